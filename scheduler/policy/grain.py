"""Decides how coarsely virtual time counts: the further ahead, the more like tasks move as one.

After so many starts, two tasks move as one, after as many again four, and so on: a start that is a thousand places away
is told to within a few places in a hundred, and a backlog costs its logarithm. What moves together draws on buckets for
all its tasks, and takes as many slots and permits as it can have at once without being most of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from scheduler.policy.scene import Job
from scheduler.policy.types import (
    DemandId,
    DemandView,
    PoolId,
    PoolView,
    ResourceId,
    ResourceKind,
    ResourceView,
    TenantId,
    TenantView,
)

PARTS_MIN: Final = 4
"""Slots, or permits, are moved in no fewer parts than this, so that tasks still run beside each other."""


class Grain:
    """`size` tasks of a lane move as one. `coarse_after` starts make it grow; None keeps every task by itself."""

    def __init__(
        self,
        pools: Mapping[PoolId, PoolView],
        demands: Mapping[DemandId, DemandView],
        resources: Mapping[ResourceId, ResourceView],
        tenants: Mapping[TenantId, TenantView],
        coarse_after: int | None,
    ) -> None:
        self.size = 1
        self.exact = coarse_after is None
        self.largest: dict[ResourceId, float] = {}
        self._pools, self._demands, self._resources, self._tenants = pools, demands, resources, tenants
        self._coarse_after = coarse_after
        self._starts = 0

    def slots_of_one(self, pool: PoolId) -> int:
        """How many slots of a pool are taken and freed together."""
        return width_max(self._pools[pool].slots, self.size)

    def count_start(self) -> bool:
        """Count one start; True when the grain grew by it."""
        self._starts += 1
        if self._coarse_after is None or self._starts < self._coarse_after:
            return False
        self._starts = 0
        self.size *= 2
        return True

    def pieces(self, number: int, *, place: int) -> Iterator[int]:
        """Cut so many tasks that follow `place` others into what may move as one when their turn comes."""
        while number > 0:
            reached = 0 if self._coarse_after is None else place // self._coarse_after
            piece = min(number, max(self.size, 1 << max(0, reached.bit_length() - 1)))
            yield piece
            number -= piece
            place += piece

    def fit(self, job: Job) -> None:
        """Set what the job takes while it runs: width, and amounts for all of it."""
        if job.count == 1:
            job.width, job.amounts = 1, job.each
            return
        views = [self._resources[r] for r in self._demands[job.lane.demand].resources] if job.each else []
        cap = self._tenants[job.lane.tenant].max_in_flight
        width = min(job.count, self.slots_of_one(job.lane.pool), width_max(cap, self.size))
        for view, each in zip(views, job.each, strict=True):
            if view.kind is ResourceKind.SEMAPHORE and each > 0.0:
                width = min(width, int(view.permits / PARTS_MIN / each))
        job.width = max(1, width)
        job.amounts = tuple(
            each * (job.width if view.kind is ResourceKind.SEMAPHORE else job.count)
            for view, each in zip(views, job.each, strict=True)
        )
        for view, amount in zip(views, job.amounts, strict=True):
            self.largest[view.id] = max(amount, self.largest.get(view.id, 0.0))

    def merged(self, jobs: Iterable[Job]) -> list[Job]:
        """Jobs of one lane in order, neighbours that had no start yet made one where that is no more than the grain."""
        kept: list[Job] = []
        for job in jobs:
            before = kept[-1] if kept else None
            if before is None or before.count + job.count > self.size or _moves_alone(before) or _moves_alone(job):
                kept.append(job)
            else:
                _absorb(before, job)
        for job in kept:
            self.fit(job)
        return kept


def width_max(room: int | None, size: int) -> int:
    """How many of a group may run at once where there is room for so many in all (None: no bound)."""
    return size if room is None else max(1, min(size, room // PARTS_MIN))


def _moves_alone(job: Job) -> bool:
    """What was tried is somewhere in its attempts; what is labelled is looked for."""
    return job.attempts > 0 or job.label != 0


def _absorb(job: Job, other: Job) -> None:
    total = job.count + other.count
    part = other.count / total
    job.each = tuple(a + (b - a) * part for a, b in zip(job.each, other.each, strict=True))
    job.runs_s += (other.runs_s - job.runs_s) * part
    job.expected_s += other.expected_s
    deadlines = [at for at in (job.latest_start, other.latest_start) if at is not None]
    job.latest_start = min(deadlines, default=None)
    job.count = total
