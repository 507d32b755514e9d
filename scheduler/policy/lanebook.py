"""Decides which lanes a plan looks at, so that a plan of a few starts reads a few lanes however many there are.

The book remembers every lane with ready work: since when its head waits at the latest, and the virtual counter that
orders it. Of each group (pool, class, demand) a plan reads the lanes of the lowest counters and the one that waits
longest; the rest stands in the plan as one unread lane, with the lowest counter and the oldest head among them. A plan
that reaches it stops there and asks for another look, which then reaches further. So the order of starts is the same
as if everything had been read.

What the book knows may be older than the database: a head may have gone (then the lane is found empty or younger when
it is read), and a settlement may have corrected a counter (it is read anew with the lane, and all of them whenever the
book is written anew). It never decides what starts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final, NamedTuple

from scheduler.policy.types import (
    DemandId,
    FairCounter,
    Lane,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    TaskId,
    TaskView,
    TenantId,
    TenantView,
)

REACH_MIN: Final = 2
REACH_MAX: Final = 512
_UNREAD: Final = 1 << 62
"""Unread lanes are given tenants and tasks from here on: after all real ones where everything else is equal."""

_NOBODYS: Final[Mapping[PoolId, Mapping[TenantId, int]]] = {}

Arrivals = tuple[int, int]
"""How often something came to a lane since the counts were folded, and the mark of the last time."""

GroupKey = tuple[PoolId, PriorityClass, DemandId]
Entry = tuple[float, LaneKey]


class Look(NamedTuple):
    """What a plan is to read: these lanes, each `width` tasks deep; and what stands for the rest."""

    keys: list[LaneKey]
    width: int
    unread: list[Lane]
    strangers: dict[TenantId, TenantView]


class _Group:
    """The lanes of one (pool, class, demand), by counter and by age. Outdated entries drop out when they are met."""

    __slots__ = ("by_age", "by_counter", "reach")

    def __init__(self) -> None:
        self.by_counter: list[Entry] = []
        self.by_age: list[Entry] = []
        self.reach = REACH_MAX


class LaneBook:
    """All lanes with ready work, as far as is known."""

    def __init__(self) -> None:
        self.ready_since: dict[LaneKey, float] = {}
        self.in_pool: Counter[PoolId] = Counter()
        self.folds: int | None = None
        self.always: list[LaneKey] = []
        self._seen: Mapping[LaneKey, Arrivals] = {}
        self._place: dict[LaneKey, float] = {}
        self._groups: dict[GroupKey, _Group] = defaultdict(_Group)
        self._counters: dict[tuple[TenantId, PriorityClass], FairCounter] = {}
        self._clocks: dict[PriorityClass, float] = {}

    # Writing

    def rewrite(
        self,
        lanes: Iterable[tuple[LaneKey, float]],
        counters: Mapping[tuple[TenantId, PriorityClass], FairCounter],
        clocks: Mapping[PriorityClass, float],
        *,
        folds: int,
        arrivals: Mapping[LaneKey, Arrivals],
    ) -> None:
        """Forget everything but how far to look, and know these lanes by the time since which their heads are ready.

        `arrivals` is what came to lanes since the counts were folded for the `folds`-th time: it is in `lanes`.
        """
        self.folds = folds
        self._seen = arrivals
        reach = {key: group.reach for key, group in self._groups.items()}
        self.ready_since.clear()
        self._place.clear()
        self._groups.clear()
        self.in_pool.clear()
        self._counters = dict(counters)
        self._clocks = dict(clocks)
        # Those who stayed are seated before those who come back from idle, whose place is among them.
        back = [(key, ready_at) for key, ready_at in lanes if not self._enter_if_stayed(key, ready_at)]
        for key, ready_at in back:
            self.enter(key, ready_at)
        for group, known in self._groups.items():
            known.reach = reach.get(group, REACH_MAX)

    def arrived(self, arrivals: Mapping[LaneKey, Arrivals], *, now: float) -> list[LaneKey]:
        """Take note of what came since the last look; the lanes that had no work before."""
        new = [k for k, n in arrivals.items() if self._seen.get(k) != n and k not in self.ready_since]
        self._seen = arrivals
        for key in new:
            self.enter(key, now)
        return new

    def enter(self, key: LaneKey, ready_at: float) -> None:
        """A lane has work, the first of it ready since then."""
        known = self.ready_since.get(key)
        group = self._groups[key.pool, key.priority, key.demand]
        if known is None:
            self.in_pool[key.pool] += 1
        if known != ready_at:
            self.ready_since[key] = ready_at
            heappush(group.by_age, (ready_at, key))
        place = self._counter_of(key)
        if self._place.get(key) != place:
            self._place[key] = place
            heappush(group.by_counter, (place, key))

    def _enter_if_stayed(self, key: LaneKey, ready_at: float) -> bool:
        stored = self._counters.get((key.tenant, key.priority))
        if stored is None or ready_at > stored.last_start_at:
            return False
        self.enter(key, ready_at)
        return True

    def strike(self, key: LaneKey) -> None:
        """A lane has no work any more."""
        if self.ready_since.pop(key, None) is not None:
            del self._place[key]
            self.in_pool[key.pool] -= 1

    def _counter_of(self, key: LaneKey) -> float:
        """The counter that orders the lane: its tenant's own, or lifted when the tenant was idle (see `fairness`)."""
        stored = self._counters.get((key.tenant, key.priority))
        if stored is not None and self.ready_since[key] <= stored.last_start_at:
            return stored.value
        place = self._place.get(key)
        if place is not None:
            return self._counter_now(key, place)
        # As low as the lowest, not just below it: the next one to come back is measured by this one.
        floor = min(self._clocks.get(key.priority, 0.0), self._lowest(key))
        return floor if stored is None else max(stored.value, floor)

    def _lowest(self, key: LaneKey) -> float:
        """The lowest counter of those that the lane shares pool and class with."""
        lowest = inf
        for (pool, priority, _), group in self._groups.items():
            if pool == key.pool and priority == key.priority:
                first = _first(group.by_counter, self._place)
                lowest = lowest if first is None else min(lowest, first[0])
        return lowest

    # Looking

    def look(self, rooms: Mapping[PoolId, int], own: Mapping[PoolId, Mapping[TenantId, int]] = _NOBODYS) -> Look | None:
        """What a plan with so many free slots by pool reads: some lanes of each group, and what it reads always.

        `own` are free slots that one tenant's work alone may take: its lanes are read whatever their place. None when
        no lane of these pools has work.
        """
        always = (k for k in self.always if k in self.ready_since and (rooms.get(k.pool, 0) > 0 or k.pool in own))
        keys: dict[LaneKey, None] = dict.fromkeys(always)
        unread: list[Lane] = []
        strangers: dict[TenantId, TenantView] = {}
        starts = 0
        for (pool, priority, demand), group in self._groups.items():
            for tenant, room in own.get(pool, {}).items():
                key = LaneKey(pool, priority, tenant, demand)
                if key in self.ready_since:
                    keys.setdefault(key)
                    starts += room
            room = rooms.get(pool, 0)
            if room <= 0:
                continue
            chosen = self._lowest_of(group, group.reach)
            starts += min(room, group.reach)
            oldest = _first(group.by_age, self.ready_since)
            if oldest is not None:
                chosen.setdefault(oldest[1])
            keys |= chosen
            rest = self._rest_of(group, keys)
            if rest is None:
                continue
            counter, ready_at = rest
            tenant, number = TenantId(_UNREAD + len(unread)), TaskId(_UNREAD + len(unread))
            head = TaskView(number, ready_at, None, 1.0, ())
            unread.append(Lane(LaneKey(pool, priority, tenant, demand), (head,), more=True, unread=True))
            strangers[tenant] = TenantView(tenant, counters={priority: FairCounter(counter, -inf)})
        if not keys:
            return None
        width = max(2, -(-2 * starts // max(1, len(keys))))
        return Look(list(keys), width, unread, strangers)

    def _lowest_of(self, group: _Group, count: int) -> dict[LaneKey, None]:
        """The lanes of the lowest counters; they keep their entries."""
        heap = group.by_counter
        taken: dict[LaneKey, None] = {}
        entries = []
        while heap and len(taken) < count:
            place, key = heappop(heap)
            if self._place.get(key) != place or key in taken:
                continue
            now = self._counter_now(key, place)
            if now != place:
                self._place[key] = now
                heappush(heap, (now, key))
                continue
            taken[key] = None
            entries.append((place, key))
        for entry in entries:
            heappush(heap, entry)
        return taken

    def _counter_now(self, key: LaneKey, place: float) -> float:
        """Its tenant may have been charged for starts in other lanes since the lane was seated."""
        stored = self._counters.get((key.tenant, key.priority))
        return place if stored is None else max(place, stored.value)

    def _rest_of(self, group: _Group, read: Mapping[LaneKey, None]) -> tuple[float, float] | None:
        """The lowest counter and the oldest head of the lanes that are not read; None when all are."""
        counter = _first_unread(group.by_counter, self._place, read)
        ready_at = _first_unread(group.by_age, self.ready_since, read)
        return None if counter is None or ready_at is None else (counter, ready_at)

    # Learning

    def learn(self, look: Look, lanes: Iterable[Lane], tenants: Mapping[TenantId, TenantView], plan: Plan) -> None:
        """What reading and planning showed: lanes that are empty or go on, counters, and how far to look next time.

        `lanes` and `tenants` are all that was read, also what the plan was not shown.
        """
        for tenant, view in tenants.items():
            for priority, counter in view.counters.items():
                self._counters[tenant, priority] = counter
        for (tenant, priority), value in plan.counters.items():
            self._counters[tenant, priority] = FairCounter(value, plan.now)
        self._clocks.update(plan.clocks)
        started = {start.task for start in plan.starts}
        found = {lane.key: lane for lane in lanes}
        for key in look.keys:
            lane = found.get(key)
            left = None if lane is None else next((t for t in lane.fifo if t.id not in started), None)
            if left is not None:
                self.enter(key, left.ready_at)
            elif lane is None or not lane.more:
                self.strike(key)
            else:
                self.enter(key, lane.fifo[-1].ready_at)
        self._learn_reach(look, plan)

    def _learn_reach(self, look: Look, plan: Plan) -> None:
        """Look twice as far as this plan came; and where that was the end of what it saw, twice as far as it looked."""
        begun = Counter((s.lane.pool, s.lane.priority, s.lane.demand) for s in plan.starts)
        for pool, priority, demand in {(k.pool, k.priority, k.demand) for k in look.keys}:
            group = self._groups[pool, priority, demand]
            further = 2 * group.reach if plan.truncated else 0
            group.reach = min(REACH_MAX, max(REACH_MIN, 2 * begun[pool, priority, demand], further))


def _first(heap: list[Entry], current: Mapping[LaneKey, float]) -> Entry | None:
    """The lowest entry that is still true; outdated ones before it are dropped."""
    while heap and current.get(heap[0][1]) != heap[0][0]:
        heappop(heap)
    return heap[0] if heap else None


def _first_unread(heap: list[Entry], current: Mapping[LaneKey, float], read: Mapping[LaneKey, None]) -> float | None:
    """The lowest value of a lane that is not read; the entries of those that are stay."""
    passed = []
    while (first := _first(heap, current)) is not None and first[1] in read:
        passed.append(heappop(heap))
    for entry in passed:
        heappush(heap, entry)
    return None if first is None else first[0]
