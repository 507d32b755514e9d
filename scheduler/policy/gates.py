"""Decides what of its limits a head lacks, and what it keeps from those after it while it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.policy.limits import Short, ShortBy, shortage

if TYPE_CHECKING:
    from scheduler.policy.board import Demand, Level
    from scheduler.policy.types import PriorityClass, TaskView

    Lack = tuple[Level, float, Short]
    """A limit, the amount that a head needs of it, and what is missing."""


def lacks(demand: Demand, head: TaskView, priority: PriorityClass, *, now: float) -> list[Lack]:
    """The limits that do not admit the head now, in the demand's order; none when it can start."""
    lacking = []
    for level, amount in zip(demand.levels, head.amounts, strict=True):
        offered, limit = level.offered(priority, head.id, amount) if level.asides else (level.available, level.limit)
        short = shortage(limit, offered, amount, now=now, floor=demand.leaves(level))
        if short is not None:
            lacking.append((level, amount, short))
    return lacking


def spoken_for(demand: Demand, head: TaskView, lacking: list[Lack], *, now: float, late_after_s: float) -> list[Level]:
    """What a head that must wait keeps from those after it: what it lacks, and when it is very late all it needs.

    The latter ends the starvation of a task that needs two limits by others that need one of them each: the two
    would never be free together. A head that waits for something closed or out of reach keeps nothing that is open.
    """
    closed = [level for level, _, short in lacking if short.by is ShortBy.CLOSED]
    if any(short.by is not ShortBy.IN_USE for _, _, short in lacking):
        return closed
    late = now - head.ready_at > late_after_s
    return demand.levels if late else [level for level, _, _ in lacking]
