"""Reads depths and bounds, ends tasks to make room, and keeps the overload level of pools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from scheduler.policy.bounds import Candidate, Depths, Overflow, PoolBounds
from scheduler.policy.graph import Links
from scheduler.policy.overload import Overload
from scheduler.policy.states import TaskState
from scheduler.policy.types import PoolId, PriorityClass, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.graphs import Ended

_SQL: Final = queries.load("bounds.sql")


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """A pool's objectives (seconds by class), whether it is paused and may degrade, and its state if it has one."""

    pool: PoolId
    slo_s: dict[PriorityClass, float]
    paused: bool
    allows_degraded: bool
    overload: Overload | None
    predicted_s: float | None
    started_per_s: float


@dataclass(frozen=True, slots=True)
class PoolStateRow:
    """What is written of a pool."""

    pool: PoolId
    overload: Overload
    degrades: bool
    predicted_s: float | None
    started_per_s: float


def take_turns(pools: Iterable[PoolId], tenants: Iterable[TenantId]) -> None:
    """Wait until no other submission is near these bounds, until the transaction ends. Give them in id order."""
    turns = [f"pool {pool}" for pool in pools] + [f"tenant {tenant}" for tenant in tenants]
    queries.run(_SQL["take_turns"], {"turns": turns})


def load_depths(pools: Sequence[PoolId], tenants: Sequence[TenantId]) -> Depths:
    """What waits now in these pools and for these tenants, as far as it is committed."""
    found = {
        (scope, of): n
        for scope, of, n, _ in queries.fetch(_SQL["read_depths"], {"pools": list(pools), "tenants": list(tenants)})
    }
    return Depths(
        {pool: found.get(("pool", pool), 0) for pool in pools},
        {tenant: found.get(("tenant", tenant), 0) for tenant in tenants},
    )


def lock_candidates(pool: PoolBounds, *, least: PriorityClass, tasks_max: int) -> list[Candidate]:
    """Up to `tasks_max` tasks that the pool may end for newcomers, the most urgent of class `least`, in their order."""
    if pool.overflow is Overflow.SHED_LOWEST:
        rows = queries.fetch(
            _SQL["lock_newest_of_lowest"], {"pool": pool.id, "least": int(least), "tasks_max": tasks_max}
        )
    else:
        rows = queries.fetch(
            _SQL["lock_oldest_low"], {"pool": pool.id, "low": int(PriorityClass.LOW), "tasks_max": tasks_max}
        )
    return [Candidate(TaskId(task), pool.id, PriorityClass(priority)) for task, priority in rows]


def shed(tasks: Sequence[TaskId]) -> list[Ended]:
    """End these ready tasks."""
    rows = queries.fetch(_SQL["shed_tasks"], {"tasks": list(tasks)})
    return [Ended(TaskId(task), TaskState.SHED, Links(links)) for task, links in rows]


def load_pool_loads() -> list[PoolLoad]:
    """All pools with their objectives and states."""
    loads = []
    for row in queries.fetch(_SQL["read_pool_states"]):
        pool, slo, paused, allows, level, since, above, calm, seen, predicted_s, started_per_s = row
        overload = None if level is None else Overload(level, since, above, calm, seen)
        limits = {PriorityClass[label.upper()]: s for label, s in orjson.loads(slo or "{}").items()}
        loads.append(PoolLoad(PoolId(pool), limits, paused, allows, overload, predicted_s, started_per_s))
    return loads


def write_pool_states(rows: Sequence[PoolStateRow]) -> None:
    """Keep the states; of pools that were removed meanwhile, none."""
    params = {
        "pools": queries.array(r.pool for r in rows),
        "levels": queries.array(r.overload.level for r in rows),
        "since": queries.array(r.overload.since for r in rows),
        "above": queries.array(r.overload.above_since for r in rows),
        "calm": queries.array(r.overload.calm_since for r in rows),
        "seen": queries.array(r.overload.seen_at for r in rows),
        "degrades": queries.array(r.degrades for r in rows),
        "predicted": queries.array(r.predicted_s for r in rows),
        "started": queries.array(r.started_per_s for r in rows),
    }
    queries.run(_SQL["write_pool_states"], params)
