"""Keeps the lanes that differ by tenant and run alone in the order in which their turns come.

All lanes of a group need the same resources of the same pool in the same class; a tenant has one there, and one more
for each of its runs. It knows tenants by counter and lanes by age and hands out the first of them. What comes after
those is told apart by what can be told without a look: of a tenant that is read in part the age of its next lane, of
all others together the lowest counter and the oldest head. It never decides what starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
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

    A plan reads the lanes of `reach` tenants, `depth` of each, and no more than `most` in all.
    """

    __slots__ = ("_by_age", "_by_counter", "_lanes", "depth", "most", "places", "reach")

    def __init__(self) -> None:
        self.places: dict[TenantId, float] = {}
        self.reach = REACH_MAX
        self.depth = DEPTH_FIRST
        self.most = REACH_MAX
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
        everybody: bool = True,
    ) -> Chosen:
        """Add lanes to those that are read: of the lowest counters, of who waits longest, and of these `besides`.

        `counters` are those of now, which may have grown since a tenant entered. Not `everybody`: of those besides
        alone, and there is no rest to speak of.
        """
        tenants = dict.fromkeys(besides)
        if everybody:
            tenants |= self._lowest(self.reach, counters, priority)
            oldest = self._oldest({})
            if oldest is not None:
                tenants.setdefault(oldest[1].tenant)
        depth = max(1, min(self.depth, self.most // max(1, len(tenants))))
        partly = {}
        for tenant in tenants:
            after = self._lanes[tenant].take(depth, read)
            if after is not None:
                partly[tenant] = after
        return Chosen(partly, self._rest(tenants, read) if everybody else None)

    def reaches_as(self, before: LaneGroup) -> None:
        """Look as far as another group would, which was the same."""
        self.reach, self.depth, self.most = before.reach, before.depth, before.most

    def learn(self, begun: Mapping[TenantId, int], starts: int, *, truncated: bool) -> None:
        """Look twice as far as this plan came, with so many lanes by tenant begun, and `starts` in them.

        Where that was the end of what it saw, twice as far as it looked; without bound if that let nothing start, so
        that however much is in the way, it is passed in a few looks.
        """
        further = 2 if truncated else 0
        stuck = truncated and not starts
        self.most = 2 * self.most if stuck else REACH_MAX
        self.reach = min(self.most, max(REACH_MIN, 2 * starts, further * self.reach))
        self.depth = min(self.most, max(DEPTH_MIN, 2 * max(begun.values(), default=0), further * self.depth))

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
