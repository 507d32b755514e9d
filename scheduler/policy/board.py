"""The planner's working state for one plan: lanes, groups, tenants and levels, and the moves on them.

Mutable and private to `plan`; it keeps the bookkeeping (heaps with lazily dropped entries) out of the decisions.
A group is the lanes of one (pool, class).
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from scheduler.policy.limits import EPSILON, Limit, limit_at
from scheduler.policy.order import OrderPolicy, score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scheduler.policy.placement import PoolSlots, Seats
    from scheduler.policy.types import (
        Lane,
        LaneKey,
        PriorityClass,
        ResourceId,
        ResourceView,
        SetAside,
        TaskId,
        TaskView,
        TenantId,
    )


class Level:
    """What is left of one resource while the plan draws on it, and the demands that need it.

    A level of a later time than now (the clock went back) is stored anew even if nothing is drawn: else the bucket
    would stay as it is until the clock gets there again.

    `available` is what anybody may take; besides, each class may have something set aside for one of its tasks.
    `floors`, by class, is what a class must leave in the bucket. `probe` is the one task that a half-open breaker let
    through.
    """

    __slots__ = (
        "aside_changes", "asides", "available", "changed", "floors", "id", "kept", "limit", "probe", "users", "whole",
    )  # fmt: skip

    def __init__(self, resource: ResourceView, now: float) -> None:
        self.id: ResourceId = resource.id
        self.limit: Limit = limit_at(resource, now=now)
        self.whole = self.limit
        self.available = self.limit.available
        self.changed = resource.level_at > now
        self.users: list[Demand] = []
        self.asides: dict[PriorityClass, tuple[SetAside, float]] = {}
        self.aside_changes: dict[PriorityClass, SetAside | None] = {}
        self.kept = 0.0
        self.probe: TaskId | None = None
        most = self.limit.capacity if self.limit.is_bucket else 0.0
        self.floors = tuple(part * most for part in resource.ceilings) if any(resource.ceilings) else None

    def floor(self, priority: PriorityClass) -> float:
        """What a task of this class must leave."""
        return 0.0 if self.floors is None else self.floors[priority]

    def set_aside(self, priority: PriorityClass, aside: SetAside, *, share: float, now: float) -> bool:
        """Keep what `share` of the refill came to since then, at most the amount, for one task; whether that is all.

        While it grows, that much less comes back for everybody else.
        """
        refill = self.limit.refill_per_s
        amount = min(aside.amount, self.limit.capacity)
        kept = min(amount, share * refill * max(0.0, now - aside.since))
        self.asides[priority] = (aside, kept)
        self.available -= kept
        self.kept += kept
        if kept < amount:
            self.limit = replace(self.limit, refill_per_s=refill * (1.0 - share))
        return kept >= amount

    def forget_aside(self, priority: PriorityClass, task: TaskId) -> None:
        """Give everybody what was kept for this task of the class, if there was something."""
        aside = self.asides.get(priority)
        if aside is not None and aside[0].task == task:
            del self.asides[priority]
            self.available += aside[1]
            self.kept -= aside[1]
            self.aside_changes[priority] = None

    def offered(self, priority: PriorityClass, task: TaskId, amount: float) -> tuple[float, Limit]:
        """What this task may take (what is there for all, and what is set aside for it), and how its limit grows.

        A full bucket loses what comes back: then, and when a task needs more than would ever be there for all, nothing
        is kept from it.
        """
        level = self.available + self.kept
        if amount > self.limit.capacity - self.kept or level >= self.limit.capacity:
            return level, self.whole
        mine = self.asides.get(priority)
        if mine is not None and mine[0].task == task:
            return self.available + mine[1], self.whole
        return self.available, self.limit

    def draw(self, priority: PriorityClass, task: TaskId, amount: float, *, now: float) -> None:
        """Take an amount. What was set aside for the task served; what was kept for others and is gone grows anew."""
        self.changed = True
        if self.limit.trial:
            self.probe = task
            self.limit = self.whole = replace(self.limit, barred=True, trial=False)
        self.forget_aside(priority, task)
        self.available -= amount
        if self.kept > 0.0 and self.available < -EPSILON * max(1.0, amount):
            for other, (aside, _) in list(self.asides.items()):
                self.forget_aside(other, aside.task)
                self.aside_changes[other] = aside._replace(since=now)


def drawn_levels(levels: Iterable[Level]) -> dict[ResourceId, float]:
    """What the plan leaves in the buckets it drew on, what is set aside included."""
    return {level.id: level.available + level.kept for level in levels if level.changed and level.limit.is_bucket}


def probes(levels: Iterable[Level]) -> dict[ResourceId, TaskId]:
    """The tasks that go through half-open breakers."""
    return {level.id: level.probe for level in levels if level.probe is not None}


class Demand:
    """Lanes that need the same resources: they leave the plan together.

    `priority` is given where a limit has ceilings: then the lanes of a class are a demand of their own.
    """

    __slots__ = ("lanes", "levels", "priority")

    def __init__(self, levels: list[Level], priority: PriorityClass | None) -> None:
        self.levels = levels
        self.priority = priority
        self.lanes: list[LaneQueue] = []
        for level in levels:
            level.users.append(self)

    def is_dry(self) -> bool:
        """Whether a limit has nothing at all to give, so that no amount need be compared."""
        return any(
            level.available + level.kept <= 0.0 or level.limit.closed_until is not None or level.limit.barred
            for level in self.levels
        )

    def leaves(self, level: Level) -> float:
        """What this demand's tasks must leave in a limit."""
        return 0.0 if self.priority is None else level.floor(self.priority)


_NONE_TAKEN: Final[set[int]] = set()
"""Where only a place in the window says what was taken; never added to."""


class LaneQueue:
    """One lane being drawn from: `head` is the task that goes next, None when nothing is left.

    When a window is used up but more tasks wait behind it, the lane keeps its last head and becomes `spent`: it still
    holds its place in the order, so a plan that reaches it knows that it must stop and look again. What its next task
    needs is not known. `seats` are the benches of workers that may run its tasks.
    """

    __slots__ = (
        "alive",
        "demand",
        "fifo_at",
        "group",
        "head",
        "head_score",
        "index",
        "key",
        "lane",
        "seats",
        "spent",
        "taken",
        "urgent_at",
    )

    def __init__(
        self, lane: Lane, demand: Demand, group: Group, seats: Seats, *, now: float, order: OrderPolicy
    ) -> None:
        self.lane = lane
        self.seats = seats
        self.key: LaneKey = lane.key
        self.demand = demand
        self.group = group
        self.index = 0
        self.fifo_at = 0
        self.urgent_at = 0
        self.taken: set[int] = set() if lane.urgent else _NONE_TAKEN
        self.alive = True
        self.spent = False
        self.head: TaskView | None = None
        self.head_score = 0.0
        if lane.unread:
            self.spent = True
            self.head = lane.fifo[0]
            self.head_score = score(self.head, lane.key.priority, now=now, policy=order)
        else:
            self._advance(now, order)

    def _advance(self, now: float, order: OrderPolicy) -> None:
        """Choose the next head: FIFO, unless the nearest deadline makes its task score higher."""
        lane = self.lane
        if lane.urgent:
            self._pass_taken()
        fifo, urgent, at = lane.fifo, lane.urgent, self.fifo_at
        if at < len(fifo) and not urgent:
            self.head = fifo[at]
            self.head_score = score(self.head, lane.key.priority, now=now, policy=order)
            return
        if lane.more and (at >= len(fifo) or (self.urgent_at >= len(urgent) >= len(fifo))):
            self.spent = True
            return
        self.head = None
        if at < len(fifo):
            self.head = fifo[at]
            self.head_score = score(self.head, lane.key.priority, now=now, policy=order)
        if self.urgent_at < len(urgent):
            rival = urgent[self.urgent_at]
            rival_score = score(rival, lane.key.priority, now=now, policy=order)
            if self.head is None or rival_score > self.head_score:
                self.head, self.head_score = rival, rival_score

    def _pass_taken(self) -> None:
        """Go on to what is left of both windows."""
        fifo, urgent, taken = self.lane.fifo, self.lane.urgent, self.taken
        while self.fifo_at < len(fifo) and fifo[self.fifo_at].id in taken:
            self.fifo_at += 1
        while self.urgent_at < len(urgent) and urgent[self.urgent_at].id in taken:
            self.urgent_at += 1

    def pop(self, now: float, order: OrderPolicy) -> None:
        """Take the head and show the next one."""
        if self.lane.urgent and self.head is not None:
            self.taken.add(self.head.id)
        else:
            self.fifo_at += 1
        self._advance(now, order)


HeadEntry = tuple[float, float, int, int]


class Group:
    """The lanes of one (pool, class), by head score and by tenant counter. Dead heap entries drop out when met."""

    __slots__ = ("alive", "by_tenant", "heads", "lanes", "passed", "pool", "priority", "tenants")

    def __init__(self, pool: PoolSlots, priority: PriorityClass) -> None:
        self.pool = pool
        self.priority = priority
        self.lanes: list[LaneQueue] = []
        self.heads: list[HeadEntry] = []
        self.by_tenant: dict[TenantId, list[HeadEntry]] = {}
        self.tenants: list[tuple[float, TenantId]] = []
        self.alive = 0
        self.passed = False

    def add(self, queue: LaneQueue) -> None:
        """Let a lane with a head into the plan. `seal` must follow before the group is asked anything."""
        head = queue.head
        if head is None:
            return
        queue.index = len(self.lanes)
        self.lanes.append(queue)
        self.alive += 1
        entry = (-queue.head_score, head.ready_at, head.id, queue.index)
        self.heads.append(entry)
        lanes = self.by_tenant.get(queue.key.tenant)
        if lanes is None:
            self.by_tenant[queue.key.tenant] = [entry]
        else:
            lanes.append(entry)

    def seal(self, counters: dict[TenantId, float]) -> None:
        """Order what was added, by head and by tenant."""
        heapify(self.heads)
        for lanes in self.by_tenant.values():
            if len(lanes) > 1:
                heapify(lanes)
        self.tenants = [(counters[tenant], tenant) for tenant in self.by_tenant]
        heapify(self.tenants)

    def renew(self, queue: LaneQueue, head: TaskView) -> None:
        """Put a lane back under its new head; the entry of the old one dies by itself."""
        entry = (-queue.head_score, head.ready_at, head.id, queue.index)
        _replace_or_push(self.heads, entry)
        _replace_or_push(self.by_tenant[queue.key.tenant], entry)

    def drop(self, queue: LaneQueue) -> None:
        """Take a lane out of this plan."""
        if queue.alive:
            queue.alive = False
            self.alive -= 1

    def drop_full(self) -> Iterator[LaneKey]:
        """Take out the lanes for which no worker has a slot left."""
        for queue in self.lanes:
            if queue.alive and not any(bench.free for bench in queue.seats):
                self.drop(queue)
                yield queue.key

    def _top(self, heap: list[HeadEntry]) -> HeadEntry | None:
        lanes = self.lanes
        while heap:
            entry = heap[0]
            queue = lanes[entry[3]]
            if queue.alive and queue.head is not None and queue.head.id == entry[2]:
                return entry
            heappop(heap)
        return None

    def best_head(self) -> HeadEntry | None:
        """The entry of the highest-scoring head, or None when the group has nothing to offer."""
        return self._top(self.heads)

    def best_lane_of(self, tenant: TenantId) -> HeadEntry | None:
        """The entry of the tenant's highest-scoring head here."""
        heap = self.by_tenant.get(tenant)
        return None if heap is None else self._top(heap)

    def next_tenant(self, counters: dict[TenantId, float]) -> tuple[float, TenantId]:
        """The tenant with the lowest counter that still has a lane here. Ask only a group with a lane alive."""
        heap = self.tenants
        while True:
            counter, tenant = heap[0]
            if self._top(self.by_tenant[tenant]) is None:
                heappop(heap)
            elif counter != counters[tenant]:
                heapreplace(heap, (counters[tenant], tenant))
            else:
                return heap[0]

    def next_lane(self, counters: dict[TenantId, float]) -> LaneQueue:
        """That tenant's lane with the highest-scoring head."""
        return self.lanes[self.by_tenant[self.next_tenant(counters)[1]][0][3]]


def _replace_or_push(heap: list[HeadEntry], entry: HeadEntry) -> None:
    """The lane's old entry is nearly always on top: overwrite it there."""
    if heap and heap[0][3] == entry[3]:
        heapreplace(heap, entry)
    else:
        heappush(heap, entry)
