"""Decides which workers of a pool may run a lane's tasks, and which of them takes the next start.

A worker that is bound to a tenant takes that tenant's work alone; a task that asks for labels goes to workers that have
them all. Among those that may, the most specific ones go first, so that what anybody can use is left for anybody; among
alike workers the least loaded. A pool whose workers are all alike and free for all pays nothing for any of this.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from scheduler.policy.types import WaitReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.policy.types import PoolId, TenantId, WorkerId, WorkerView


class Bench:
    """Workers that take the same work, the least loaded first."""

    __slots__ = ("free", "labels", "tenant", "workers")

    def __init__(self, tenant: TenantId | None, labels: frozenset[str], workers: Iterable[WorkerView]) -> None:
        self.tenant = tenant
        self.labels = labels
        self.workers: list[tuple[int, WorkerId]] = [(-w.free_slots, w.id) for w in workers if w.free_slots > 0]
        heapify(self.workers)
        self.free = -sum(free for free, _ in self.workers)

    def suits(self, tenant: TenantId, labels: frozenset[str]) -> bool:
        """Whether these workers take such work."""
        return (self.tenant is None or self.tenant == tenant) and labels <= self.labels

    def take(self) -> WorkerId:
        """Use one slot of the least loaded worker."""
        free, worker = self.workers[0]
        if free < -1:
            heapreplace(self.workers, (free + 1, worker))
        else:
            heappop(self.workers)
        self.free -= 1
        return worker


Seats = tuple[Bench, ...]
"""The benches that a lane's tasks may take, in the order in which they do."""


class PoolSlots:
    """Free slots of a pool, and the workers that offer them."""

    __slots__ = ("_seats", "benches", "connected", "free", "full", "id", "open_to_all")

    def __init__(self, pool: PoolId, slots_left: int, workers: list[WorkerView], reserved: int = 0) -> None:
        self.id = pool
        self.connected = bool(workers)
        self.full = slots_left <= 0
        alike: dict[tuple[TenantId | None, frozenset[str]], list[WorkerView]] = {}
        for worker in workers:
            alike.setdefault((worker.tenant, worker.labels), []).append(worker)
        # In a fixed order, so that the same snapshot gives the same plan.
        places = sorted(alike, key=lambda place: (place[0] is None, place[0] or 0, len(place[1]), sorted(place[1])))
        self.benches = [Bench(*place, alike[place]) for place in places]
        self.open_to_all = all(bench.tenant is None for bench in self.benches)
        self.free = max(0, min(slots_left, sum(bench.free for bench in self.benches)) - reserved)
        self._seats: dict[tuple[TenantId | None, frozenset[str]], Seats] = {}

    def seats(self, tenant: TenantId, labels: frozenset[str]) -> Seats:
        """Where tasks of this tenant that ask for these labels may run; those of all benches are alike."""
        place = (None if self.open_to_all else tenant, labels)
        known = self._seats.get(place)
        if known is None:
            known = self._seats[place] = tuple(b for b in self.benches if b.suits(tenant, labels))
        return known

    def closed_to(self, seats: Seats) -> WaitReason | None:
        """Why nothing can start there now; None when something can."""
        if not seats and not self.full:
            return WaitReason.NO_MATCHING_WORKER if self.connected else WaitReason.NO_WORKER
        return None if self.free > 0 and any(bench.free for bench in seats) else WaitReason.NO_FREE_SLOT

    def has_none_left(self, seats: Seats) -> bool:
        """Whether nothing can start there any more, though others may start."""
        return len(self.benches) > 1 and not any(bench.free for bench in seats)

    def take(self, seats: Seats) -> WorkerId:
        """Use one slot of the first bench that has one."""
        self.free -= 1
        return next(bench for bench in seats if bench.free).take()
