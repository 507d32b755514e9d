"""Reads what the console shows of engines and remote workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from scheduler.policy.types import PoolId, TaskId, WorkerId
from scheduler.store import queries

_SQL: Final = queries.load("worker_pages.sql")
FIRST_ID: Final = "00000000-0000-0000-0000-000000000000"


class WorkerRow(NamedTuple):
    """An engine or a remote worker. `silent`: not heard of lately; `leader`: it plans. Times are Unix seconds."""

    id: WorkerId
    name: str
    kind: str
    tenant: str | None
    labels: Sequence[str]
    slots: Mapping[PoolId, int]
    draining: bool
    started_at: float
    seen_at: float
    silent: bool
    busy: int
    leader: bool


class HeldRow(NamedTuple):
    """An attempt that a worker runs, since a time (Unix seconds). `told`: it was told to stop."""

    task: TaskId
    pool: str
    tenant: str
    attempt: int
    started_at: float
    told: bool


class Figures(NamedTuple):
    """How all workers stand. `now` is Unix seconds."""

    engines: int
    remote: int
    draining: int
    silent: int
    slots: int
    busy: int
    now: float


def list_page(
    *, after: tuple[str, str], kind: str | None, pool: PoolId | None, fresh_s: float, rows_max: int
) -> list[WorkerRow]:
    """Workers by name and id from beyond a name and an id."""
    params = {
        "after_name": after[0],
        "after_id": after[1],
        "kind": kind,
        "pool": None if pool is None else str(pool),
        "fresh_s": fresh_s,
        "rows_max": rows_max,
    }
    return [_worker(*row) for row in queries.fetch(_SQL["list_workers"], params)]


def _worker(*row: Any) -> WorkerRow:
    worker, name, kind, tenant, labels, slots, *rest = row
    offered = {PoolId(int(pool)): int(count) for pool, count in orjson.loads(slots).items()}
    return WorkerRow(WorkerId(worker), name, kind, tenant, tuple(labels or ()), offered, *rest)


def load_one(worker: WorkerId, *, fresh_s: float) -> WorkerRow | None:
    """The worker of that id."""
    row = queries.fetch_one(_SQL["one_worker"], {"worker": worker, "fresh_s": fresh_s})
    return None if row is None else _worker(*row)


def load_held(worker: WorkerId, *, rows_max: int) -> list[HeldRow]:
    """What a worker runs, oldest first."""
    rows = queries.fetch(_SQL["held_by_worker"], {"worker": worker, "rows_max": rows_max})
    return [HeldRow(TaskId(task), *rest) for task, *rest in rows]


def load_figures(*, fresh_s: float) -> Figures:
    """How all workers stand."""
    row = queries.fetch_one(_SQL["worker_figures"], {"fresh_s": fresh_s})
    assert row is not None  # noqa: S101 - an aggregate gives a row
    return Figures(*row)


def load_versions(*, rows_max: int) -> list[tuple[str, int]]:
    """Workers by the version that they say they are."""
    return [(version, count) for version, count in queries.fetch(_SQL["worker_versions"], {"rows_max": rows_max})]
