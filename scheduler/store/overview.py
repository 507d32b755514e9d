"""Counts and aggregates for the live picture. Cost grows with lanes and pools, never with tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from scheduler.policy.types import DemandId, PoolId, PriorityClass, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("overview.sql")

SNAPSHOTS_KEPT: Final = 120


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A failed attempt."""

    task: int
    pool: str
    tenant: str
    kind: str
    failure_class: str | None
    message: str | None
    attempt: int
    at: float


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A connected worker; `slots` by pool id."""

    id: str
    name: str
    kind: str
    slots: dict[PoolId, int]
    draining: bool
    seen_at: float
    busy: int
    leader: bool


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool as the picture shows it. `slo` is the wait in seconds that a class (by its label) may have."""

    id: PoolId
    name: str
    executor: str
    slots: int
    paused_at: float | None
    paused_by: str
    pause_reason: str
    resume_at: float | None
    slo: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """One written picture."""

    seq: int
    as_of: float
    body: dict[str, object]


def fold_counts() -> int:
    """Fold the appended changes into the counts and depths; returns how many counts changed."""
    queries.run(_SQL["mark_fold"])
    return queries.run(_SQL["fold_counts"])


def load_counts() -> dict[tuple[PoolId, PriorityClass, str], int]:
    """Tasks by pool, class and counter (a state, or `started`)."""
    rows = queries.fetch(_SQL["read_counts"])
    return {(PoolId(pool), PriorityClass(priority), counter): n for pool, priority, counter, n in rows}


def recount() -> dict[tuple[PoolId, PriorityClass, str], int]:
    """The same from the tasks themselves, state by state: what `load_counts` must equal."""
    rows = queries.fetch(_SQL["recount"])
    return {(PoolId(pool), PriorityClass(priority), state): n for pool, priority, state, n in rows}


def load_waiting_by_demand() -> dict[DemandId, int]:
    """Ready tasks by the set of resources that they need."""
    return {DemandId(demand): n for demand, n in queries.fetch(_SQL["waiting_by_demand"])}


def load_oldest_waiting() -> dict[tuple[PoolId, PriorityClass], float]:
    """When the longest waiting ready task became ready, by pool and class."""
    rows = queries.fetch(_SQL["oldest_waiting"])
    return {(PoolId(pool), PriorityClass(priority)): at for pool, priority, at in rows}


def load_recent_failures(rows_max: int = 10) -> list[FailureRow]:
    """The newest failed attempts."""
    return [FailureRow(*row) for row in queries.fetch(_SQL["recent_failures"], {"rows_max": rows_max})]


def load_workers(rows_max: int = 100) -> list[WorkerRow]:
    """Connected workers and what they run."""
    return [
        WorkerRow(
            worker, name, kind, {PoolId(int(p)): n for p, n in orjson.loads(slots).items()}, draining, seen, busy, leads
        )
        for worker, name, kind, slots, draining, seen, busy, leads in queries.fetch(
            _SQL["read_workers"], {"rows_max": rows_max}
        )
    ]


class Offered(NamedTuple):
    """Workers that offer a pool slots, those of them that a task may go to, and the slots of these that are free."""

    workers: int
    matching: int
    free: int


@asked
def load_offered(
    pool: PoolId, *, tenant: TenantId | None = None, labels: Sequence[str] = (), fresh_s: float
) -> Question[Offered]:
    """What workers seen within `fresh_s` offer to a pool, for work of a tenant (None: anybody) that asks for labels."""
    params = {"pool": pool, "tenant": tenant, "labels": list(labels), "fresh_s": fresh_s}
    return Question(_SQL["offered_slots"], params, lambda rows: Offered(*rows[0]))


@asked
def load_pools() -> Question[list[PoolRow]]:
    """All pools by name."""
    return Question(_SQL["read_pools"], {}, lambda rows: [_pool(*row) for row in rows])


def _pool(*row: Any) -> PoolRow:
    *plain, slo = row
    fields: list[Any] = [*plain, orjson.loads(slo or "{}") or {}]
    return PoolRow(*fields)


@asked
def load_running() -> Question[dict[PoolId, int]]:
    """Live leases by pool."""
    return Question(_SQL["running_by_pool"], {}, lambda rows: {PoolId(pool): n for pool, n in rows})


class RunningTask(NamedTuple):
    """An attempt that runs since `since` (Unix seconds); `stopping`: it was told to stop."""

    task: int
    tenant: str
    priority: PriorityClass
    attempt: int
    since: float
    stopping: bool


def load_running_tasks(pool: str, *, rows_max: int) -> list[RunningTask]:
    """What runs in a pool, longest first."""
    rows = queries.fetch(_SQL["running_tasks"], {"pool": pool, "rows_max": rows_max})
    return [RunningTask(task, tenant, PriorityClass(p), *rest) for task, tenant, p, *rest in rows]


def add_snapshot(body: Mapping[str, object]) -> int:
    """Store a picture and forget old ones; returns its number."""
    row = queries.fetch_one(_SQL["add_snapshot"], {"body": orjson.dumps(body).decode()})
    queries.run(_SQL["prune_snapshots"], {"keep": SNAPSHOTS_KEPT})
    assert row is not None  # noqa: S101 - INSERT … RETURNING gives a row
    return int(row[0])


def load_latest_snapshot() -> SnapshotRow | None:
    """The newest picture."""
    row = queries.fetch_one(_SQL["latest_snapshot"])
    return None if row is None else SnapshotRow(row[0], row[1], {**orjson.loads(row[2]), "seq": row[0]})
