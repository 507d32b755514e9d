"""Decides for which tasks a part of a bucket's refill is kept, and when that is enough for them to start.

A class that goes first only because it is owed its share does not speak for a bucket. When its head lacks an amount,
the class's share of the refill is set aside for it until it fits; so a large request of a low class starts in bounded
time at the price of that share, and small urgent ones never wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.policy.gates import lacks
from scheduler.policy.limits import ShortBy
from scheduler.policy.types import SetAside

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.policy.board import Group, LaneQueue, Level
    from scheduler.policy.gates import Lack
    from scheduler.policy.order import OrderPolicy
    from scheduler.policy.types import PriorityClass, ResourceId, TaskId, TaskView


class Asides:
    """The set-asides of one plan. One counts while its task could start but for the limit: nobody waits for others."""

    def __init__(
        self,
        kept: Mapping[tuple[ResourceId, PriorityClass], SetAside],
        levels: Mapping[ResourceId, Level],
        by_class: Mapping[PriorityClass, list[Group]],
        *,
        now: float,
        order: OrderPolicy,
    ) -> None:
        self._levels = levels
        self._now = now
        self._shares = order.shares
        self._ripe: list[LaneQueue] = []
        for (resource, priority), aside in kept.items():
            queue = _headed_by(aside.task, by_class.get(priority, []))
            if queue is None:
                continue
            if levels[resource].set_aside(priority, aside, share=self._shares[priority], now=now):
                self._ripe.append(queue)

    def next_ripe(self) -> LaneQueue | None:
        """A lane whose head has all that was to be set aside for it and lacks nothing else; it goes before all others.

        What was kept for one that now waits for something that no refill brings is given up.
        """
        while self._ripe:
            queue = self._ripe.pop()
            head, group = queue.head, queue.group
            if head is None or not queue.alive or not group.pool.free:
                continue
            lacking = lacks(queue.demand, head, group.priority, now=self._now)
            if not lacking:
                return queue
            if not self.begin(queue, head, lacking):
                for level in queue.demand.levels:
                    level.forget_aside(group.priority, head.id)
        return None

    def begin(self, queue: LaneQueue, head: TaskView, lacking: list[Lack]) -> bool:
        """Keep the share of its class for a head that lacks only what buckets will have again; whether that is so."""
        if any(short.by is not ShortBy.IN_USE or not level.limit.is_bucket for level, _, short in lacking):
            return False
        priority = queue.key.priority
        for level, amount, _ in lacking:
            if priority not in level.asides:
                aside = SetAside(head.id, min(amount + queue.demand.leaves(level), level.limit.capacity), self._now)
                level.set_aside(priority, aside, share=self._shares[priority], now=self._now)
                level.aside_changes[priority] = aside
        return True

    def changes(self) -> dict[tuple[ResourceId, PriorityClass], SetAside | None]:
        """What is new, and None for what has served or was given up."""
        return {(level.id, p): aside for level in self._levels.values() for p, aside in level.aside_changes.items()}


def _headed_by(task: TaskId, groups: list[Group]) -> LaneQueue | None:
    for group in groups:
        for queue in group.lanes:
            if queue.head is not None and queue.head.id == task and not queue.spent:
                return queue
    return None
