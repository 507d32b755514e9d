"""Runs, and what was killed beside them, as a plan reads them along with its lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.policy.run_gates import Kills, RunView
from scheduler.policy.runs import KillScope, RunState
from scheduler.policy.types import BudgetView, DemandId, PoolId, RunId, TaskId, TenantId


class RunRow(NamedTuple):
    """A run with a lane in the plan. `capped`: it has used up what it may; `next_write`: whose turn to write it is.

    `demands` are all that its steps need, each with whether those write.
    """

    id: RunId
    state: RunState
    max_width: int
    capped: bool
    next_write: TaskId | None
    budget: BudgetView | None
    demands: tuple[tuple[DemandId, bool], ...]


def run_rows(rows: Iterable[Sequence[Any]]) -> list[RunRow]:
    """Runs as `read_lanes` gives them."""
    return [
        RunRow(
            run,
            RunState(state),
            width,
            capped,
            next_write,
            None if budget is None else BudgetView(*budget),
            tuple((demand, writes) for demand, writes in demands),
        )
        for run, state, width, capped, next_write, budget, demands in rows
    ]


def run_views(rows: Iterable[RunRow], leases: Mapping[DemandId, int]) -> dict[RunId, RunView]:
    """Runs with what is left of their width, by the demands of live leases."""
    return {
        row.id: RunView(
            row.id,
            active=row.state is RunState.ACTIVE,
            killed=row.state is RunState.KILLED,
            capped=row.capped,
            room=row.max_width - sum(leases.get(demand, 0) for demand, _ in row.demands),
            writing=any(writes and demand in leases for demand, writes in row.demands),
            next_write=row.next_write,
            budget=row.budget,
            demands=tuple(demand for demand, _ in row.demands),
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
