"""Decides whether a tenant's turn would carry a lesser head past a better class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.policy.board import Group, LaneQueue
    from scheduler.policy.types import PriorityClass


def is_beaten(queue: LaneQueue, by_class: Mapping[PriorityClass, list[Group]]) -> bool:
    """Whether another class has a higher-scoring head in the same pool, or at a limit that this lane needs.

    Its class was chosen for its best head; a tenant's turn must not carry a lesser head past a better class.
    """
    for groups in by_class.values():
        for group in groups:
            if group.priority == queue.key.priority or not group.alive or not group.pool.free:
                continue
            entry = group.best_head()
            if entry is None or -entry[0] <= queue.head_score:
                continue
            levels = group.lanes[entry[3]].demand.levels
            if group.pool is queue.group.pool or any(level in levels for level in queue.demand.levels):
                return True
    return False
