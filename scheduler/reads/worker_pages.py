"""What the console shows of engines and remote workers: how all stand, a page of them, one with what it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.types import WORKER_FRESH_S, PoolId, WorkerId
from scheduler.reads.audit import AuditRow, events_of
from scheduler.reads.pools import pool_names
from scheduler.store import control
from scheduler.store import worker_pages as store
from scheduler.store.worker_pages import FIRST_ID, Figures, HeldRow, WorkerRow

__all__ = ["FIRST_ID", "Figures", "HeldRow", "WorkerRow"]

ROWS: Final = 50
HELD_MAX: Final = 100
VERSIONS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Page:
    """Workers by name. `after` is the name and id to go on from, None at the end; `pools` names pools by their ids."""

    rows: Sequence[WorkerRow]
    after: tuple[str, str] | None
    pools: Mapping[int, str]


def list_page(*, kind: str | None, pool: str, after: tuple[str, str]) -> Page:
    """A page. Raises Refused for a pool that does not exist."""
    found = store.list_page(after=after, kind=kind, pool=_pool(pool), fresh_s=WORKER_FRESH_S, rows_max=ROWS + 1)
    page = found[:ROWS]
    return Page(page, (page[-1].name, page[-1].id) if len(found) > ROWS else None, pool_names())


def _pool(name: str) -> PoolId | None:
    if not name:
        return None
    rows = control.load_pools([name]) if "\x00" not in name else []
    if not rows:
        detail = f"There is no pool named {name!r}."
        raise Refused(detail, code="unknown_pool", errors=(FieldError(("pool",), detail),))
    return PoolId(rows[0].id)


def figures() -> Figures:
    """How all workers stand."""
    return store.load_figures(fresh_s=WORKER_FRESH_S)


def versions() -> list[tuple[str, int]]:
    """Workers by the version that they say they are."""
    return store.load_versions(rows_max=VERSIONS_MAX)


@dataclass(frozen=True, slots=True)
class Story:
    """One worker with what it runs (`more`: and further attempts)."""

    row: WorkerRow
    held: Sequence[HeldRow]
    more: bool
    pools: Mapping[int, str]
    audit: Sequence[AuditRow]


def story(worker: str) -> Story:
    """Everything that is told of a worker, by the text of its UUID. Raises NotFound."""
    known = WorkerId(worker)
    row = store.load_one(known, fresh_s=WORKER_FRESH_S)
    if row is None:
        detail = f"There is no worker {worker}. One that has left is forgotten after a while."
        raise NotFound(detail, code="unknown_worker")
    held = store.load_held(known, rows_max=HELD_MAX + 1)
    audit = events_of(f"worker:{known}")
    return Story(row, held[:HELD_MAX], len(held) > HELD_MAX, pool_names(), audit)
