"""Keeps the lanes that differ by tenant and run alone in the order in which their turns come.

All lanes of a group need the same resources of the same pool in the same class; a tenant has one there, and one more
for each of its runs. It knows tenants by counter and lanes by age and hands out the first of them. What comes after
those is told apart by what can be told without a look: of a tenant that is read in part the age of its next lane, of
all others together the lowest counter and the oldest head. It never decides what starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from heapq import heappop, heappush
from math import ceil, inf
from typing import Final, NamedTuple, TypeVar

from scheduler.policy.types import FairCounter, LaneKey, PriorityClass, TenantId

REACH_MIN: Final = 2
REACH_MAX: Final = 512
DEPTH_MIN: Final = 2
DEPTH_FIRST: Final = 8

Counters = Mapping[tuple[TenantId, PriorityClass], FairCounter]
AgeEntry = tuple[float, LaneKey]
Owner = TypeVar("Owner")


class Rest(NamedTuple):
    """Lanes of a group that are not read: the lowest counter of their tenants, and since when the oldest head waits."""

    counter: float
    ready_at: float


class Chosen(NamedTuple):
    """What was added to the lanes to read; by tenant that is read in part, the age of its next lane; and the rest."""

    partly: dict[TenantId, float]
    rest: Rest | None


class End(Enum):
    """What a plan came to the end of."""

    TENANTS = auto()
    """Those whose lanes were read."""
    LANES = auto()
    """What was read of a tenant's lanes."""
    TASKS = auto()
    """What was read of a lane."""


class Stop(NamedTuple):
    """A plan came to the end of what it saw of this group, with a tenant's lane; `stuck`: before anything started."""

    at: End
    tenant: TenantId
    stuck: bool


def _further(came: int) -> int:
    """A quarter further than this, and one."""
    return came + came // 4 + 1


class _Lanes:
    """A tenant's lanes in a group, by age. Entries of lanes that left or aged drop out when they are met."""

    __slots__ = ("by_age", "since")

    def __init__(self) -> None:
        self.since: dict[LaneKey, float] = {}
        self.by_age: list[AgeEntry] = []

    def enter(self, key: LaneKey, ready_at: float) -> None:
        self.since[key] = ready_at
        heappush(self.by_age, (ready_at, key))

    def take(self, count: int, read: dict[LaneKey, None]) -> float | None:
        """Add the oldest so many lanes to those that are read; the age of the oldest that is not, None for none."""
        passed: list[AgeEntry] = []
        after: float | None = None
        while (first := first_of(self.by_age, self.since)) is not None:
            if first[1] not in read:
                if count <= 0:
                    after = first[0]
                    break
                read[first[1]] = None
                count -= 1
            passed.append(heappop(self.by_age))
        for entry in passed:
            heappush(self.by_age, entry)
        return after


class LaneGroup:
    """The lanes of one pool and class that need the same, whoever's and whichever run's they are.

    A plan reads the lanes of `reach` tenants, `depth` of each (or as many as `depths` says), and no more than `most` in
    all; about so many `starts` are to be expected of it.
    """

    __slots__ = ("_by_age", "_by_counter", "_lanes", "_room", "depth", "depths", "most", "places", "reach", "starts")

    def __init__(self) -> None:
        self.places: dict[TenantId, float] = {}
        self.reach = REACH_MAX
        self.depth = DEPTH_FIRST
        self.depths: dict[TenantId, int] = {}
        self.most = REACH_MAX
        self.starts = REACH_MAX
        self._room: float = inf
        self._lanes: dict[TenantId, _Lanes] = {}
        self._by_counter: list[tuple[float, TenantId]] = []
        self._by_age: list[AgeEntry] = []

    def enter(self, key: LaneKey, ready_at: float, place: float) -> None:
        """A lane has work, the first of it ready since then; its tenant's counter is `place`."""
        lanes = self._lanes.get(key.tenant)
        if lanes is None:
            lanes = self._lanes[key.tenant] = _Lanes()
        if lanes.since.get(key) != ready_at:
            lanes.enter(key, ready_at)
            heappush(self._by_age, (ready_at, key))
        if self.places.get(key.tenant) != place:
            self.places[key.tenant] = place
            heappush(self._by_counter, (place, key.tenant))

    def strike(self, key: LaneKey) -> None:
        """A lane that has entered is not to be read any more."""
        lanes = self._lanes[key.tenant]
        del lanes.since[key]
        if not lanes.since:
            del self._lanes[key.tenant], self.places[key.tenant]

    def lowest(self) -> float | None:
        """The lowest counter of a tenant with a lane here."""
        first = first_of(self._by_counter, self.places)
        return None if first is None else first[0]

    def has(self, tenant: TenantId) -> bool:
        """Whether the tenant has a lane here."""
        return tenant in self._lanes

    def choose(
        self,
        read: dict[LaneKey, None],
        counters: Counters,
        priority: PriorityClass,
        *,
        besides: Iterable[TenantId] = (),
        room: int = REACH_MAX,
    ) -> Chosen:
        """Add lanes to those that are read: of the lowest counters, of who waits longest, and of these `besides`.

        `counters` are those of now, which may have grown since a tenant entered. `room` is how many may start whoever's
        they are: more than last time are looked for among more tenants. Without room, of those besides alone, and there
        is no rest to speak of.
        """
        tenants = dict.fromkeys(besides)
        everybody = room > 0
        if everybody:
            reach = min(self.most, ceil(self.reach * max(1.0, room / self._room)))
            self._room = room
            tenants |= self._lowest(reach, counters, priority)
            oldest = self._oldest({})
            if oldest is not None:
                tenants.setdefault(oldest[1].tenant)
        depth = max(1, min(self.depth, self.most // max(1, len(tenants))))
        partly = {}
        for tenant in tenants:
            after = self._lanes[tenant].take(self.depths.get(tenant, depth), read)
            if after is not None:
                partly[tenant] = after
        return Chosen(partly, self._rest(tenants, read) if everybody else None)

    def reaches_as(self, before: LaneGroup) -> None:
        """Look as far as another group would, which was the same."""
        self.reach, self.depth, self.most = before.reach, before.depth, before.most
        self.depths, self.starts, self._room = before.depths, before.starts, before._room

    def learn(self, begun: Mapping[TenantId, int], starts: int, *, truncated: bool, stop: Stop | None = None) -> None:
        """Look a quarter further than this plan came, with so many lanes by tenant begun, and `starts` in them.

        Where it had to `stop` at the end of what it saw of this group, twice as far as it looked there; without bound
        if nothing had started, so that however much is in the way, it is passed in a few looks. After a plan that
        stopped elsewhere, no less far than before.
        """
        reach, depth, expected = _further(len(begun)), _further(max(begun.values(), default=0)), 2 * starts
        if truncated:
            reach, depth, expected = max(reach, self.reach), max(depth, self.depth), max(expected, self.starts)
        else:
            self.most, self.depths = REACH_MAX, {}
        if stop is not None:
            self.most = 2 * self.most if stop.stuck else self.most
            if stop.at is End.TENANTS:
                reach = 2 * self.reach
            elif stop.at is End.TASKS:
                expected = 2 * self.starts
            else:
                self.depths[stop.tenant] = min(self.most, 2 * self.depths.get(stop.tenant, self.depth))
        self.reach = min(self.most, max(REACH_MIN, reach))
        self.depth = min(self.most, max(DEPTH_MIN, depth))
        self.starts = min(self.most, max(REACH_MIN, expected))

    def _lowest(self, count: int, counters: Counters, priority: PriorityClass) -> dict[TenantId, None]:
        """The tenants of the lowest counters; they keep their entries."""
        heap = self._by_counter
        taken: dict[TenantId, None] = {}
        entries = []
        while heap and len(taken) < count:
            place, tenant = heappop(heap)
            if self.places.get(tenant) != place or tenant in taken:
                continue
            stored = counters.get((tenant, priority))
            if stored is not None and stored.value > place:
                # It has been charged for starts in other groups since.
                self.places[tenant] = stored.value
                heappush(heap, (stored.value, tenant))
                continue
            taken[tenant] = None
            entries.append((place, tenant))
        for entry in entries:
            heappush(heap, entry)
        return taken

    def _rest(self, tenants: Mapping[TenantId, None], read: Mapping[LaneKey, None]) -> Rest | None:
        """What is not read of other tenants than these; None when there is none.

        The oldest head may be one of a tenant that is read in part: it stands in the plan anyway.
        """
        counter = _first_besides(self._by_counter, self.places, tenants)
        oldest = self._oldest(read)
        return None if counter is None or oldest is None else Rest(counter[0], oldest[0])

    def _oldest(self, read: Mapping[LaneKey, None]) -> AgeEntry | None:
        """The lane that waits longest of those that are not read."""
        passed = []
        found: AgeEntry | None = None
        heap = self._by_age
        while heap:
            ready_at, key = heap[0]
            lanes = self._lanes.get(key.tenant)
            if lanes is None or lanes.since.get(key) != ready_at:
                heappop(heap)
                continue
            if key not in read:
                found = heap[0]
                break
            passed.append(heappop(heap))
        for entry in passed:
            heappush(heap, entry)
        return found


def first_of(heap: list[tuple[float, Owner]], current: Mapping[Owner, float]) -> tuple[float, Owner] | None:
    """The lowest entry that is still true; outdated ones before it are dropped."""
    while heap and current.get(heap[0][1]) != heap[0][0]:
        heappop(heap)
    return heap[0] if heap else None


def _first_besides(
    heap: list[tuple[float, TenantId]], current: Mapping[TenantId, float], but: Mapping[TenantId, None]
) -> tuple[float, TenantId] | None:
    """The lowest entry of somebody else; the entries of those that are passed over stay."""
    passed = []
    while (first := first_of(heap, current)) is not None and first[1] in but:
        passed.append(heappop(heap))
    for entry in passed:
        heappush(heap, entry)
    return first
