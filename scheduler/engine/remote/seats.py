"""A remote worker that is connected here: what it was given, what it has to be told, and what it offers.

Bookkeeping of one event loop, without database and without waiting for anybody.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduler.policy.remote import Given, RemoteWorker, Stop
from scheduler.policy.types import LeaseId, PoolId, TenantId, WorkerId

SETTLED_IN_S: Final = 2.0
"""Leases are looked for only after this: what was claimed a moment ago may not be in the answer."""
GAP_MAX_S: Final = 1.5
"""Who takes longer from one poll to the next does something else meanwhile."""
GAP_KEPT: Final = 0.7
"""How much of the longest gap is remembered from one poll to the next."""
PATIENCE: Final = 1.5
ON_ITS_WAY_S: Final = 1.0
"""A lease that another process handed out so long before a poll was said has come, or never will."""


@dataclass(frozen=True, slots=True)
class News:
    """What a worker is handed: leases, attempts to stop and why, and whether to finish and go."""

    leases: list[Given]
    stops: dict[LeaseId, str]
    drain: bool


class Seat:
    """One connected worker. A socket is one seat for as long as it is open; polls share one while they follow closely.

    `held` are leases that were claimed for it and have not ended, with their pools and since when. `named` are those
    that the worker said it has when it came, and with its last poll; None when it never said.
    """

    def __init__(self, worker: RemoteWorker, *, socket: bool, now: float, named: Collection[int] | None = None) -> None:
        self.id: WorkerId = worker.id
        self.tenant: TenantId | None = worker.tenant
        self.declared: dict[PoolId, int] = worker.declared
        self.socket = socket
        self.draining = worker.draining
        self.offered: dict[PoolId, int] = dict(worker.declared) if socket else {}
        self.inbox: deque[tuple[float, Given]] = deque()
        self.held: dict[LeaseId, tuple[PoolId, float]] = {}
        self.named: frozenset[int] | None = None if named is None else frozenset(named)
        self.named_at = now
        self.gap_s = 0.0
        self.returned: frozenset[LeaseId] = frozenset(worker.strays)
        self.polls = 0
        self.quiet_since = now
        self.closed: str | None = None
        self.wake = asyncio.Event()
        self._stops: dict[LeaseId, str] = {}
        self._told: set[LeaseId] = set()
        self._told_to_drain = False

    # What comes for it

    def give(self, given: Given, *, now: float) -> None:
        """A lease came for this worker."""
        self.inbox.append((now, given))
        self.held[given.task.lease] = (given.task.pool, now)
        self.wake.set()

    def stop(self, lease: LeaseId, why: str) -> None:
        """An attempt is to stop; said once."""
        if lease not in self._told:
            self._told.add(lease)
            self._stops[lease] = why
            self.wake.set()

    def drain(self) -> None:
        """The worker is to finish what it has."""
        self.draining = True
        self.wake.set()

    def close(self, why: str) -> None:
        """The socket is to be closed."""
        self.closed = why
        self.wake.set()

    def forget(self, lease: LeaseId) -> None:
        """A lease has ended."""
        self.held.pop(lease, None)
        self._told.discard(lease)
        self._stops.pop(lease, None)

    # What it takes

    @property
    def has_news(self) -> bool:
        """Whether there is something to hand over."""
        return bool(self.inbox or self._stops or (self.draining and not self._told_to_drain))

    def take(self, leases_max: int) -> News:
        """Hand over what there is, at most so many leases."""
        leases = [self.inbox.popleft()[1] for _ in range(min(leases_max, len(self.inbox)))]
        # An attempt that is to stop before it was handed over is not begun: its lease ends by itself.
        stops, self._stops = self._stops, {}
        drain = self.draining and (not self.socket or not self._told_to_drain)
        self._told_to_drain = self.draining
        return News(leases, stops, drain)

    def take_old(self, before: float) -> list[Given]:
        """What lies here since before then: nobody came for it."""
        old = []
        while self.inbox and self.inbox[0][0] < before:
            old.append(self.inbox.popleft()[1])
        return old

    # What it offers

    def wanted(self, leases_max: int, named: Collection[int] = ()) -> dict[PoolId, int]:
        """What it offers while it waits for so many leases more: those and what it has, within what it declared.

        Leases that it names and that another process handed out may be of any of its pools.
        """
        if self.draining:
            return {}
        busy = Counter(pool for pool, _ in self.held.values())
        others = sum(lease not in self.held for lease in named)
        return {pool: min(slots, busy[pool] + others + leases_max) for pool, slots in self.declared.items()}

    def ended(self, live: Mapping[LeaseId, Stop], *, before: float) -> list[LeaseId]:
        """Leases that it was given before then and that are not there any more."""
        return [lease for lease, (_, since) in self.held.items() if since < before and lease not in live]

    def came(self, *, now: float) -> None:
        """It polls. How long that took it after its last poll tells how long the next one may take."""
        if not self.polls:
            gap_s = now - self.quiet_since
            self.gap_s = max(gap_s, GAP_KEPT * self.gap_s) if gap_s < GAP_MAX_S else 0.0
        self.polls += 1

    @property
    def patience_s(self) -> float:
        """How long more than usual it is waited for: its polls are slow to come where everything is."""
        return PATIENCE * self.gap_s

    def name(self, leases: Collection[int], *, now: float) -> None:
        """The worker says what it has."""
        self.named, self.named_at = frozenset(leases), now

    def never_got(self, lease: LeaseId, *, age_s: float, now: float) -> bool:
        """Whether a lease is one that another process took up for this worker, and that did not reach it.

        What is handed out here is in `held`. A socket is the only one of its worker; beside a poll there may be another
        one elsewhere, so only what is older than the worker's last word is judged by it.
        """
        if self.named is None or lease in self.held or lease in self.named:
            return False
        settled_s = SETTLED_IN_S if self.socket else max(SETTLED_IN_S, now - self.named_at + ON_ITS_WAY_S)
        return age_s > settled_s

    def strays(self, named: Collection[int], *, before: float) -> list[LeaseId]:
        """Leases handed over before then that the worker does not know: an answer never reached it."""
        waiting = {given.task.lease for _, given in self.inbox}
        return [
            lease
            for lease, (_, since) in self.held.items()
            if since < before and lease not in named and lease not in waiting
        ]


@dataclass(slots=True)
class Offers:
    """What has changed and is not stored yet: offers by worker, and workers that left."""

    changed: dict[WorkerId, dict[PoolId, int]] = field(default_factory=dict)
    gone: set[WorkerId] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)

    def take(self) -> Offers:
        """All of it, and begin anew."""
        taken = Offers(self.changed, self.gone)
        self.changed, self.gone = {}, set()
        return taken

    def put_back(self, taken: Offers) -> None:
        """It could not be stored; what came meanwhile is newer."""
        self.changed = {**taken.changed, **self.changed}
        self.gone |= taken.gone - self.changed.keys()
