"""Decides how an engine or a remote worker reads: its state in a word, its pools, how busy it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.live import wording
from scheduler.live.drawing import Segment, segments
from scheduler.reads.worker_pages import Figures, HeldRow, WorkerRow
from scheduler.web.task_story import Chip, Figure, When, when

POOLS_MAX = 3


def chip_of(row: WorkerRow) -> Chip:
    """Where a worker stands."""
    if row.silent:
        return Chip("off", "Silent", "bad")
    if row.draining:
        return Chip("drain", "Draining", "warn")
    if row.leader:
        return Chip("ok", "Leads", "ok")
    if not row.slots:
        return Chip("idle", "Away", "quiet")
    return Chip("ok", "Ready", "ok")


def state_sentence(row: WorkerRow) -> str:
    """The same in a sentence."""
    if row.silent:
        return "It was not heard of lately: it is given nothing, and its leases go to others as they expire."
    if row.draining:
        return "It finishes what it has and takes nothing new."
    if not row.slots:
        return "It is known, but offers nothing now: no connection of it is open."
    return "It plans for all and takes work." if row.leader else "It takes work."


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A worker in the list."""

    row: WorkerRow
    chip: Chip
    pools: str
    slots: int
    free: int
    bar: Sequence[Segment]
    seen: When
    seen_ago: str
    labels: str
    kind: str


def line_of(row: WorkerRow, pools: Mapping[int, str], *, now: float) -> WorkerLine:
    """One row of the list."""
    slots = max(sum(row.slots.values()), row.busy)
    names = sorted(pools.get(pool, "removed") for pool in row.slots)
    return WorkerLine(
        row=row,
        chip=chip_of(row),
        pools=wording.name_list(names, POOLS_MAX) if names else "none now",
        slots=slots,
        free=slots - row.busy,
        bar=segments([("hot" if row.busy >= slots else "use", row.busy)], max(slots, 1)),
        seen=when(row.seen_at),
        seen_ago=f"{wording.duration(max(now - row.seen_at, 0.0))} ago",
        labels=wording.name_list(list(row.labels), POOLS_MAX),
        kind="engine" if row.kind == "engine" else f"remote, for {row.tenant or 'every tenant'}",
    )


def list_figures(found: Figures) -> list[Figure]:
    """The numbers over the list."""
    return [
        Figure("Engines", wording.count(found.engines), "plan, and run local pools"),
        Figure("Remote workers", wording.count(found.remote), "connected, or away for a while"),
        Figure("Slots", wording.count(found.slots), "offered now"),
        Figure("Running", wording.count(found.busy), "attempts, at all of them"),
        Figure("Draining", wording.count(found.draining), "finish what they have"),
        Figure("Silent", wording.count(found.silent), "not heard of lately"),
    ]


@dataclass(frozen=True, slots=True)
class HeldLine:
    """An attempt that runs."""

    row: HeldRow
    since: When
    for_: str


def held_line(row: HeldRow, *, now: float) -> HeldLine:
    """One attempt in words."""
    return HeldLine(row, when(row.started_at), wording.duration(max(now - row.started_at, 0.0)))
