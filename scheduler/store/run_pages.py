"""Reads what the console shows of runs: lists by state, how far they are, and one run's steps over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from scheduler.policy.runs import RunState
from scheduler.policy.states import TaskState
from scheduler.policy.types import Outcome, RunId, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("run_pages.sql")
ID_MAX: Final = 2**63 - 1


class Progress(NamedTuple):
    """Steps of a run that run, that are yet to start, and those of them that are ready."""

    running: int
    open: int
    ready: int


class Figures(NamedTuple):
    """How all runs stand, none counted further than was asked. `now` is Unix seconds."""

    active: int
    paused: int
    near_cap: int
    killed_lately: int
    steps_running: int
    steps_open: int
    now: float


class Span(NamedTuple):
    """A step over time, from its first attempt to the end of its last; `ended` None: it has not, or never began."""

    task: TaskId
    state: TaskState
    writes: bool
    began: float | None
    ended: float | None


class StepRow(NamedTuple):
    """A step as it is listed. `cost_nano` None: nothing was charged. Times are Unix seconds."""

    task: TaskId
    kind: str
    key: str | None
    pool: str
    state: TaskState
    writes: bool
    attempts: int
    created_at: float
    ready_at: float | None
    running_since: float | None
    cost_nano: int | None


class AttemptSpan(NamedTuple):
    """A finished attempt over time."""

    task: TaskId
    began: float
    ended: float
    outcome: Outcome


class ModelCost(NamedTuple):
    """What a model cost a run; None: the time of workers. `wasted_nano` paid for attempts that failed."""

    model: str | None
    attempts: int
    cost_nano: int
    wasted_nano: int


def list_ids(
    states: Sequence[RunState], *, tenant: TenantId | None, above: int, below: int, older: bool, rows_max: int
) -> list[RunId]:
    """Runs in these states with above < id < below, newest first: those nearest to `below`, else nearest to `above`."""
    params = {
        "states": [state.value for state in states],
        "tenant": tenant,
        "above": above,
        "below": below,
        "rows_max": rows_max,
    }
    name = f"list_{'older' if older else 'newer'}{'' if tenant is None else '_of_tenant'}"
    if tenant is None:
        del params["tenant"]
    ids = [RunId(row[0]) for row in queries.fetch(_SQL[name], params)]
    return ids if older else ids[::-1]


def newest_before(age_s: float) -> int:
    """The newest run of at least that age; 0 when there is none."""
    row = queries.fetch_one(_SQL["newest_before"], {"age_s": age_s})
    return 0 if row is None else int(row[0])


@asked
def load_progress(runs: Sequence[RunId]) -> Question[dict[RunId, Progress]]:
    """How far these runs are."""
    params = {"runs": list(runs)}
    return Question(_SQL["run_progress"], params, lambda rows: {RunId(run): Progress(*rest) for run, *rest in rows})


def load_figures(*, lately_s: float, count_max: int) -> Figures:
    """How all runs stand."""
    row = queries.fetch_one(_SQL["run_figures"], {"lately_s": lately_s, "count_max": count_max})
    assert row is not None  # noqa: S101 - a SELECT of scalars gives a row
    return Figures(*row)


@asked
def load_timeline(run: RunId, *, steps_max: int) -> Question[list[Span]]:
    """The run's newest steps, oldest first."""
    return Question(
        _SQL["run_timeline"],
        {"run": run, "steps_max": steps_max},
        lambda rows: [Span(TaskId(row[0]), TaskState(row[1]), *row[2:]) for row in rows],
    )


@asked
def load_edges(steps: Sequence[TaskId], *, edges_max: int) -> Question[list[tuple[TaskId, TaskId]]]:
    """Pairs of these steps and what each comes after."""
    params = {"steps": list(steps), "edges_max": edges_max}
    return Question(_SQL["run_edges"], params, lambda rows: [(TaskId(child), TaskId(parent)) for child, parent in rows])


@asked
def load_steps(run: RunId, *, after: int, rows_max: int) -> Question[list[StepRow]]:
    """A page of the run's steps, as they came."""
    params = {"run": run, "after": after, "rows_max": rows_max}
    return Question(_SQL["run_steps"], params, lambda rows: [_step(*row) for row in rows])


def _step(task: int, kind: str, key: str | None, pool: str, state: str, *rest: Any) -> StepRow:
    return StepRow(TaskId(task), kind, key, pool, TaskState(state), *rest)


@asked
def load_attempts(steps: Sequence[TaskId], *, each_max: int) -> Question[list[AttemptSpan]]:
    """The newest finished attempts of each of these steps, oldest first."""
    return Question(
        _SQL["run_attempts"],
        {"steps": list(steps), "each_max": each_max},
        lambda rows: [AttemptSpan(TaskId(row[0]), row[1], row[2], Outcome(row[3])) for row in rows],
    )


@asked
def load_cost_by_model(run: RunId, *, rows_max: int) -> Question[list[ModelCost]]:
    """What the run's steps cost, the dearest model first."""
    params = {"run": run, "rows_max": rows_max}
    return Question(_SQL["run_cost_by_model"], params, lambda rows: [ModelCost(*row) for row in rows])


@asked
def waits_longest(run: RunId) -> Question[TaskId | None]:
    """The step that has been ready for longest."""
    return Question(_SQL["waits_longest"], {"run": run}, lambda rows: TaskId(rows[0][0]) if rows else None)


def count_unfinished_claims(run: RunId) -> int:
    """Effects that were claimed and may or may not have been made."""
    row = queries.fetch_one(_SQL["unfinished_claims"], {"run": run})
    return 0 if row is None else int(row[0])
