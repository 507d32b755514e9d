"""What submissions, settlements and the leader's round write of runs: steps taken in, tokens used, ends carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from scheduler.policy.graph import Links
from scheduler.policy.runs import ALERT_AT, Cap, Caps, Near, RunState, Use
from scheduler.policy.states import TaskState
from scheduler.policy.types import DemandId, LeaseId, RunId, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.groups import Member

_SQL: Final = queries.load("run_steps.sql")


class RunTerms(NamedTuple):
    """A run as a submission meets it."""

    tenant: TenantId
    state: RunState
    steps: int
    max_steps: int


class Heeded(NamedTuple):
    """A run that somebody has to look at."""

    run: RunId
    tenant: TenantId
    state: RunState
    use: Use


def lock_terms(runs: Iterable[RunId]) -> dict[RunId, RunTerms]:
    """Take the turn to submit to these runs, and see on which terms. One that is missing does not exist."""
    wanted = sorted(runs)
    taken: dict[int, int] = dict(queries.fetch(_SQL["lock_intakes"], {"runs": wanted}))
    return {
        RunId(run): RunTerms(TenantId(tenant), RunState(state), taken[run], max_steps)
        for run, tenant, state, max_steps in queries.fetch(_SQL["read_run_terms"], {"runs": wanted})
    }


def demand_of_run(run: RunId, base: DemandId, *, writes: bool) -> DemandId:
    """The id of what a run's steps need that need this, and the run's leave; added when it is new."""
    params = {"run": run, "writes": writes, "base": base}
    row = queries.fetch_one(_SQL["find_run_demand"], params) or queries.fetch_one(_SQL["add_run_demand"], params)
    return demand_of_run(run, base, writes=writes) if row is None else DemandId(row[0])


def count_taken_in(steps: Mapping[RunId, int]) -> None:
    """Count steps that runs took in, whose turn the caller has."""
    params = {"runs": queries.array(steps), "steps": queries.array(steps.values()), "alert_at": ALERT_AT}
    queries.run(_SQL["count_taken_in"], params)


def charge(tokens: Sequence[tuple[DemandId, int]]) -> None:
    """Count what ended attempts used, by the demand of their step."""
    params = {
        "demands": queries.array(demand for demand, _ in tokens),
        "tokens": queries.array(used for _, used in tokens),
        "alert_at": ALERT_AT,
    }
    queries.run(_SQL["charge_runs"], params)


def load_heeded(runs_max: int) -> list[RunId]:
    """Runs that came near a cap, or that the clock says to look at."""
    return [RunId(row[0]) for row in queries.fetch(_SQL["read_heeded"], {"runs_max": runs_max})]


def lock_uses(runs: Sequence[RunId]) -> list[Heeded]:
    """Lock these runs and see what they have used; one that somebody else moves is left out."""
    found = []
    for run, tenant, state, *caps, wall_s, created_at, steps, tokens, cost, spent_out in queries.fetch(
        _SQL["read_uses"], {"runs": queries.array(runs)}
    ):
        max_steps, max_width, max_tokens, max_cost_nano = caps
        use = Use(
            Caps(max_steps, max_width, max_tokens, max_cost_nano, wall_s), created_at, steps, tokens, cost, spent_out
        )
        found.append(Heeded(RunId(run), TenantId(tenant), RunState(state), use))
    return found


def mark_broke(runs: Iterable[RunId]) -> None:
    """These runs cannot pay for their next step: somebody has to look."""
    queries.run(_SQL["mark_broke"], {"runs": queries.array(runs)})


def raise_alerts(near: Sequence[tuple[RunId, Near]]) -> set[tuple[RunId, Cap]]:
    """Put down which runs came near which caps, once for each; which are new."""
    params = {
        "runs": queries.array(run for run, _ in near),
        "caps": queries.array(each.cap.value for _, each in near),
        "used": queries.array(each.used for _, each in near),
        "most": queries.array(each.most for _, each in near),
    }
    return {(RunId(run), Cap(cap)) for run, cap in queries.fetch(_SQL["raise_run_alerts"], params)}


def heeded(heed_ats: Mapping[RunId, float | None]) -> None:
    """These runs have been looked at; when the clock matters to them next."""
    queries.run(_SQL["heeded"], {"runs": queries.array(heed_ats), "heed_ats": queries.array(heed_ats.values())})


def load_closing(runs_max: int) -> list[RunId]:
    """Runs that have ended, and may have steps left."""
    return [RunId(row[0]) for row in queries.fetch(_SQL["read_closing_runs"], {"runs_max": runs_max})]


def load_waiting(runs: Sequence[RunId], *, tasks_max: int) -> list[Member]:
    """Steps of these runs that wait."""
    rows = queries.fetch(_SQL["waiting_steps"], {"runs": queries.array(runs), "tasks_max": tasks_max})
    return [Member(TaskId(task), TaskState(state), Links(links)) for task, state, links in rows]


def tell(runs: Sequence[RunId]) -> list[LeaseId]:
    """Tell the running steps of those that were killed to stop; which were told now."""
    return [LeaseId(row[0]) for row in queries.fetch(_SQL["tell_steps"], {"runs": queries.array(runs)})]


def close(runs: Sequence[RunId]) -> None:
    """Forget those of which nothing is left to be stopped."""
    queries.run(_SQL["close_runs"], {"runs": queries.array(runs)})


def forget_demands(*, after_s: float) -> int:
    """Remove what the steps of runs needed that ended longer ago than this, once no step is kept; returns how many."""
    return queries.run(_SQL["forget_run_demands"], {"after_s": after_s})
