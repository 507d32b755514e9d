"""Decides how workers read, one by one and by pool: how many there are, how busy, and whether any are missing.

"No workers" is said only where that keeps work back: something waits, nobody is there, and nobody paused the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.live import wording
from scheduler.live.board import PoolView, WorkerView, element_id
from scheduler.live.drawing import Segment, segments
from scheduler.live.rows import Chip, cell_ids

_WORKER_CELLS: Final = ("link", "state", "bar", "slots", "seen")


@dataclass(frozen=True, slots=True)
class PoolWorkers:
    """One pool's line. `icon`, `word` and `tone` are its state in three ways at once; the ids are safe in HTML."""

    pool: PoolView
    icon: str
    word: str
    tone: str
    busy: str
    bar: Sequence[Segment]
    ids: Ids


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of the cells that change."""

    state: str
    workers: str
    bar: str
    busy: str
    waiting: str


def workers_by_pool(pools: Sequence[PoolView]) -> list[PoolWorkers]:
    """Every pool, those that lack workers first, then by name."""
    lines = [_line(pool) for pool in pools]
    return sorted(lines, key=lambda line: (line.tone != "bad", line.pool.name))


def _line(pool: PoolView) -> PoolWorkers:
    icon, word, tone = _state(pool)
    fill = "hot" if pool.slots and pool.running >= pool.slots else "use"
    return PoolWorkers(
        pool=pool,
        icon=icon,
        word=word,
        tone=tone,
        busy=f"{wording.count(pool.running)} of {wording.count(pool.slots)}",
        bar=segments([(fill, pool.running)], max(pool.slots, 1)),
        ids=Ids(*(element_id(f"wp-{part}", pool.name) for part in ("state", "workers", "bar", "busy", "waiting"))),
    )


def _state(pool: PoolView) -> tuple[str, str, str]:
    if pool.state == "paused":
        return ("pause", "Paused", "quiet")
    if pool.workers:
        return ("ok", "Connected", "ok")
    if pool.waiting:
        return ("cross", "No workers connected", "bad")
    return ("idle", "None, and nothing waits", "quiet")


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A line of the engines table."""

    worker: WorkerView
    ids: dict[str, str]
    chip: Chip
    bar: Sequence[Segment]
    pools: str


def worker_rows(workers: Sequence[WorkerView]) -> list[WorkerRow]:
    """Engines and workers, the leader first, then by name."""
    return [
        WorkerRow(
            worker=worker,
            ids=cell_ids(element_id("w", worker.id), _WORKER_CELLS),
            chip=_worker_chip(worker),
            bar=segments([("use", worker.busy)], worker.slots),
            pools=wording.name_list(list(worker.pools)) or "all",
        )
        for worker in sorted(workers, key=lambda worker: (not worker.leader, worker.name, worker.id))
    ]


def _worker_chip(worker: WorkerView) -> Chip:
    if worker.draining:
        return Chip("drain", "Draining", "warn")
    return Chip("ok", "Leads" if worker.leader else "Ready", "ok")
