"""Runs, and what was killed beside them, as a plan reads them along with its lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.policy.run_gates import Kills, RunView
from scheduler.policy.runs import KillScope, RunState
from scheduler.policy.types import BudgetView, DemandId, DemandView, PoolId, RunId, TaskId, TenantId


class RunRow(NamedTuple):
    """A run with a lane in the plan. `capped`: it has used up what it may; `next_write`: whose turn to write it is."""

    id: RunId
    state: RunState
    max_width: int
    capped: bool
    next_write: TaskId | None
    budget: BudgetView | None


def run_rows(rows: Iterable[Sequence[Any]]) -> list[RunRow]:
    """Runs as `read_lanes` gives them."""
    return [
        RunRow(run, RunState(state), width, capped, next_write, None if budget is None else BudgetView(*budget))
        for run, state, width, capped, next_write, budget in rows
    ]


def run_views(
    rows: Iterable[RunRow], demands: Mapping[DemandId, DemandView], in_flight: Iterable[tuple[DemandId, int]]
) -> dict[RunId, RunView]:
    """Runs with what is left of their width, by the demands of live leases; `demands` knows those of the latter too."""
    running: Counter[RunId] = Counter()
    writing: set[RunId] = set()
    for demand, leases in in_flight:
        view = demands[demand]
        if view.run is not None:
            running[view.run] += leases
            if view.writes:
                writing.add(view.run)
    return {
        row.id: RunView(
            row.id,
            active=row.state is RunState.ACTIVE,
            killed=row.state is RunState.KILLED,
            capped=row.capped,
            room=row.max_width - running[row.id],
            writing=row.id in writing,
            next_write=row.next_write,
            budget=row.budget,
        )
        for row in rows
    }


def kills_of(rows: Iterable[tuple[str, int]]) -> Kills:
    """What is killed, as `read_control` gives it."""
    found: dict[str, set[int]] = {}
    for scope, scope_id in rows:
        found.setdefault(scope, set()).add(scope_id)
    return Kills(
        everything=KillScope.EVERYTHING in found,
        pools=frozenset(PoolId(pool) for pool in found.get(KillScope.POOL, ())),
        tenants=frozenset(TenantId(tenant) for tenant in found.get(KillScope.TENANT, ())),
    )
