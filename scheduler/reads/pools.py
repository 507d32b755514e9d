"""Pools as pages and the API show them: what was declared, whether they are paused, and what they hold now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.errors import NotFound
from scheduler.policy.declarations import PoolSettings
from scheduler.policy.states import WAITING, TaskState
from scheduler.policy.types import PoolId, PriorityClass
from scheduler.store import bounds, control, overview

_NOT_READY: Final = WAITING - {TaskState.READY}


@dataclass(frozen=True, slots=True)
class Pause:
    """Who stopped a pool, why and when (Unix seconds). `resumes_at` None: until somebody resumes it."""

    by: str
    reason: str
    at: float
    resumes_at: float | None = None


@dataclass(frozen=True, slots=True)
class PoolDetail:
    """A pool now. `waiting` counts ready tasks by class, `scheduled` those that wait for a time of their own."""

    name: str
    executor: str
    settings: PoolSettings
    version: int
    pause: Pause | None
    waiting: Mapping[str, int]
    scheduled: int
    running: int
    overload_level: int = 0
    overload_since: float | None = None
    predicted_s: float | None = None

    @property
    def state(self) -> str:
        """`running` or `paused`."""
        return "running" if self.pause is None else "paused"


def pause_of(row: control.PoolRow) -> Pause | None:
    """The pause of a pool as it is kept."""
    return None if row.paused_at is None else Pause(row.paused_by, row.pause_reason, row.paused_at, row.resume_at)


def pool_detail(name: str) -> PoolDetail:
    """The pool of that name. Raises NotFound."""
    found = _details(control.load_pools([name])) if "\x00" not in name else []
    if not found:
        raise unknown_pool(name)
    return found[0]


def unknown_pool(name: str) -> NotFound:
    """What is raised for a name that no pool has."""
    return NotFound(f"There is no pool named {name!r}.", code="unknown_pool")


def list_pools() -> list[PoolDetail]:
    """All pools by name."""
    return _details(control.load_pools())


def _details(rows: list[control.PoolRow]) -> list[PoolDetail]:
    if not rows:
        return []
    counts = overview.load_counts()
    running = overview.load_running()
    loads = {load.pool: load for load in bounds.load_pool_loads()}
    return [_detail(row, counts, running.get(row.id, 0), loads.get(row.id)) for row in rows]


def _detail(
    row: control.PoolRow,
    counts: Mapping[tuple[PoolId, PriorityClass, str], int],
    running: int,
    load: bounds.PoolLoad | None,
) -> PoolDetail:
    waiting = {p.label: counts.get((row.id, p, TaskState.READY.value), 0) for p in PriorityClass}
    scheduled = sum(counts.get((row.id, p, state.value), 0) for p in PriorityClass for state in _NOT_READY)
    overload = None if load is None else load.overload
    return PoolDetail(
        row.name,
        row.executor,
        row.settings,
        row.version,
        pause_of(row),
        waiting,
        scheduled,
        running,
        0 if overload is None else overload.level,
        None if overload is None else overload.since,
        None if load is None else load.predicted_s,
    )


def pool_names() -> dict[int, str]:
    """The names of all pools by id."""
    return {row.id: row.name for row in overview.load_pools()}
