"""The remote workers of one web process: takes up the leases that plans gave them, and keeps their offers true.

Two loops run while a worker is connected, whatever the number of workers: one claims what was given to any of them, in
one statement; the other stores what they offer, shows that they live, and finds what is to stop. Everything here can be
lost: a worker comes back under its id, its leases are in the database, and what nobody fetches is handed back.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db import DatabaseError

from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.engine.remote.batches import Batches
from scheduler.engine.remote.reports import Reported, Reports, report_of
from scheduler.engine.remote.seats import SETTLED_IN_S, News, Offers, Seat
from scheduler.engine.remote.writes import Writes
from scheduler.errors import Refused
from scheduler.policy.remote import Beat, Claim, Given, HeldLease, Kept, RemoteWorker, Stop
from scheduler.policy.types import LeaseId, PoolId, WorkerId
from scheduler.protocol.messages import Report as Said
from scheduler.protocol.writes import Write
from scheduler.reads.runs import with_runs
from scheduler.reads.upstream import with_upstream
from scheduler.services import workers as service
from scheduler.services.tokens import Principal

logger = logging.getLogger(__name__)

POLL_S: Final = 0.25
"""What a lost ring costs."""
GAP_S: Final = 0.004
"""Between two claims, so that the leases of several plans come together."""
BEAT_S: Final = 1.0
LOOK_GAP_S: Final = 0.2
"""Between two looks for attempts that are to stop, however often the bell rings."""
LINGER_S: Final = 0.3
"""How long a worker that polls is offered after its poll: the next one comes at once, or it does something else."""
INBOX_S: Final = 0.9
"""How long a lease waits for the next poll of its worker."""
FORGET_S: Final = 30.0
RETRY_MAX_S: Final = 1.0

STOPS: Final = {Stop.CANCELLED: "cancelled", Stop.TIMEOUT: "timeout"}
REPLACED: Final = "replaced"
FORGOTTEN: Final = "forgotten"


class Gateway:
    """The workers of one event loop; to be used from that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Random per boot.
        self.id = WorkerId(str(uuid.uuid4()))
        self.seats: dict[WorkerId, Seat] = {}
        self.reports = Reports()
        self._writes = Writes()
        self._loop = loop
        self._by_lease: dict[LeaseId, Seat] = {}
        self._offers = Offers()
        self._given = asyncio.Event()
        self._changed = asyncio.Event()
        self._looked_at = self._beat_at = 0.0
        self._look = False
        self._running: dict[str, asyncio.Task[None]] = {}
        self._found: Batches[WorkerId, RemoteWorker | None] = Batches("remote-find", _find, most=500)
        self._kept: Batches[Sequence[Claim], dict[LeaseId, Kept]] = Batches("remote-renew", _renew, most=500)

    # Coming and going

    def sit(self, worker: RemoteWorker, *, socket: bool, named: Collection[int] | None = None) -> Seat:
        """A worker is here; its earlier seat is given up. `named`: the leases that it says it has."""
        before = self.seats.get(worker.id)
        if before is not None:
            self._rise(before)
            before.close(REPLACED)
        seat = self.seats[worker.id] = Seat(worker, socket=socket, now=self._loop.time(), named=named)
        for lease in worker.strays:
            self.reports.hand_back(lease)
        self._offers.gone.discard(worker.id)
        for name, step in (("claim", self._claim_once), ("tend", self._tend_once)):
            if name not in self._running:
                self._running[name] = self._loop.create_task(self._while_needed(name, step), name=f"remote {name}")
        return seat

    def leave(self, seat: Seat) -> None:
        """A worker is gone from here: it is offered no more, and what it did not fetch is handed back."""
        if self.seats.get(seat.id) is seat:
            del self.seats[seat.id]
            self._offers.changed.pop(seat.id, None)
            self._offers.gone.add(seat.id)
            self._changed.set()
        self._rise(seat)

    def _rise(self, seat: Seat) -> None:
        for given in seat.take_old(float("inf")):
            self._hand_back(given)
        for lease in seat.held:
            self._by_lease.pop(lease, None)

    async def seat_for_polls(self, worker: WorkerId, caller: Principal) -> Seat:
        """The seat of a worker that polls. Raises NotFound for one that is unknown or another tenant's."""
        seat = self.seats.get(worker)
        if seat is None or seat.closed is not None:
            known = await self._found.join(worker)
            if known is None:
                raise service.unknown_worker(worker)
            # Another poll of the same worker may have been faster.
            seat = self.seats.get(worker) or self.sit(known, socket=False)
        if caller.tenant_id is not None and caller.tenant_id != seat.tenant:
            raise service.unknown_worker(worker)
        return seat

    async def poll(
        self,
        seat: Seat,
        *,
        leases_max: int,
        wait_s: float,
        held: Collection[int] | None = None,
        reporting: Awaitable[object] | None = None,
    ) -> News:
        """What there is for a worker that polls, as soon as there is something, or nothing after `wait_s` seconds.

        `held` names all leases that the worker knows; those that never reached it are handed back. `reporting` is
        waited for first: reports that came with the poll.
        """
        self._want(seat, seat.wanted(leases_max, held or ()))
        seat.came(now=self._loop.time())
        try:
            if reporting is not None:
                await reporting
            if held is not None:
                seat.name(held, now=self._loop.time())
                for lease in seat.strays(held, before=self._loop.time() - SETTLED_IN_S):
                    self._forget(lease)
                    self.reports.hand_back(LeaseId(lease))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    while not seat.has_news and seat.closed is None:
                        seat.wake.clear()
                        await seat.wake.wait()
            return seat.take(leases_max)
        finally:
            seat.polls -= 1
            seat.quiet_since = self._loop.time()

    def _want(self, seat: Seat, offer: dict[PoolId, int]) -> None:
        if offer != seat.offered:
            seat.offered = offer
            self._offers.changed[seat.id] = offer
            self._changed.set()

    def drain(self, seat: Seat) -> None:
        """The worker wants nothing new."""
        self._want(seat, {})
        seat.declared = {}
        for given in seat.take_old(float("inf")):
            self._hand_back(given)

    # Leases

    async def report(self, said: Sequence[Said], caller: Principal) -> list[str | Refused | None]:
        """Settle reports. Of each: the state of its task, None when the lease is not the caller's any more, or why not.

        To be shielded: a report that has come is settled also if its sender hangs up.
        """
        answers: list[str | Refused | None] = [None] * len(said)
        taken: dict[int, Reported] = {}
        for place, each in enumerate(said):
            try:
                report = report_of(each)
            except Refused as error:
                answers[place] = error
            else:
                seat = self._by_lease.get(report.lease)
                taken[place] = Reported(report, _claim_of(report.lease, caller), known=_owns(caller, seat))
        for place, state in zip(taken, await self.reports.send(list(taken.values())), strict=True):
            answers[place] = state
            self._forget(taken[place].report.lease)
        return answers

    async def write(self, said: Write, caller: Principal) -> Mapping[str, Any]:
        """Keep what a worker writes while it works, and answer it. Raises Conflict for a stale lease, and Refused."""
        return await self._writes.send(said, _claim_of(LeaseId(said.lease), caller))

    async def keep(self, leases: Sequence[LeaseId], caller: Principal) -> dict[LeaseId, Kept]:
        """Renew leases of the caller's workers; those that are still theirs."""
        kept = await self._kept.join([_claim_of(lease, caller) for lease in leases])
        for lease in leases:
            if lease not in kept:
                self._forget(lease)
        return kept

    def _forget(self, lease: LeaseId) -> None:
        seat = self._by_lease.pop(lease, None)
        if seat is not None:
            seat.forget(lease)

    def _hand_back(self, given: Given) -> None:
        self._forget(given.task.lease)
        self.reports.hand_back(given.task.lease)

    # The two loops

    async def _while_needed(self, name: str, step: Callable[[DbThread], Awaitable[None]]) -> None:
        """Repeat a step while somebody is connected. A fault is told once, then waited out with jitter."""
        db = DbThread(f"remote-{name}")
        faults = 0
        bell, heard = (Bell.GIVEN, self._on_given) if name == "claim" else (Bell.WORK, self._on_work)
        off = DOORBELL.on(bell, self._from_any_thread(heard))
        try:
            while self.seats or self._offers:
                try:
                    await step(db)
                    faults = 0
                except Exception:
                    if not faults:
                        logger.exception("the %s loop of remote workers failed; trying again", name)
                    faults += 1
                    await asyncio.sleep(min(RETRY_MAX_S, 0.05 * 2**faults) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
        finally:
            # At once: a worker that comes now starts another loop.
            del self._running[name]
            off()
            db.close()

    def _from_any_thread(self, call: Callable[[], None]) -> Callable[[], None]:
        def ring() -> None:
            # A loop that has closed waits for nothing any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(call)

        return ring

    def _on_given(self) -> None:
        self._given.set()

    def _on_work(self) -> None:
        if self._by_lease and not self._look:
            self._look = True
            self._changed.set()

    async def _claim_once(self, db: DbThread) -> None:
        """Take up what was given to workers of this process, and hand it to them."""
        await _at_most(POLL_S, self._given.wait())
        self._given.clear()
        if not self.seats:
            return
        given, unread = await db.call(_claim, self.id)
        now = self._loop.time()
        for each in given:
            seat = self.seats.get(each.task.worker)
            if seat is None or each.task.lease in unread or each.task.lease in seat.returned:
                self._hand_back(each)
                continue
            self._by_lease[each.task.lease] = seat
            seat.give(each, now=now)
        await asyncio.sleep(GAP_S)

    async def _tend_once(self, db: DbThread) -> None:
        """Store what changed; each second show who lives, and learn what is to stop."""
        await _at_most(POLL_S, self._changed.wait())
        self._changed.clear()
        now = self._loop.time()
        self._retire(now)
        if self._offers:
            await self._store_offers(db)
        if self.seats and (now - self._beat_at > BEAT_S or (self._look and now - self._looked_at > LOOK_GAP_S)):
            self._beat_at = self._looked_at = now
            self._look = False
            learnt = await db.call(service.beat, self.id, list(self.seats))
            self._note_lost(learnt)
            self._note_held(learnt.held, now)
        # Offers that change within a few milliseconds are stored together.
        await asyncio.sleep(GAP_S)

    async def _store_offers(self, db: DbThread) -> None:
        taken = self._offers.take()
        try:
            gone = taken.gone - self.seats.keys()
            if gone:
                await db.call(service.withdraw, self.id, gone)
            if taken.changed:
                known = await db.call(service.offer, self.id, taken.changed)
                for worker in taken.changed.keys() - known:
                    self._close(worker, FORGOTTEN)
        except Exception:
            self._offers.put_back(taken)
            raise

    def _retire(self, now: float) -> None:
        """Stop offering workers that do not poll any more, and hand back what they do not fetch."""
        for seat in [s for s in self.seats.values() if not s.socket and not s.polls]:
            quiet_s = now - seat.quiet_since
            if quiet_s > LINGER_S + seat.patience_s:
                self._want(seat, {})
            for given in seat.take_old(now - INBOX_S - seat.patience_s):
                self._hand_back(given)
            if quiet_s > FORGET_S and not seat.held:
                self.leave(seat)

    def _note_lost(self, learnt: Beat) -> None:
        known = learnt.known
        for seat in list(self.seats.values()):
            if seat.id not in known:
                # A worker that polls elsewhere, or not at all at the moment, has no offer here.
                if seat.socket or (seat.offered and seat.id not in self._offers.changed):
                    # Only what is sure to be elsewhere is told so: that ends it. What is nowhere comes again.
                    self._close(seat.id, REPLACED if seat.id in learnt.elsewhere else FORGOTTEN)
            elif known[seat.id] and not seat.draining:
                seat.drain()
                self._want(seat, {})

    def _note_held(self, held: Sequence[HeldLease], now: float) -> None:
        live = {each.lease: each.stop for each in held}
        for each in held:
            seat = self.seats.get(each.worker)
            if seat is not None and seat.never_got(each.lease, age_s=each.age_s, now=now):
                self.reports.hand_back(each.lease)
            elif seat is not None and each.stop is not Stop.NO:
                seat.stop(each.lease, STOPS[each.stop])
        for seat in list(self.seats.values()):
            for lease in seat.ended(live, before=now - SETTLED_IN_S):
                self._forget(lease)

    def _close(self, worker: WorkerId, why: str) -> None:
        seat = self.seats.pop(worker, None)
        if seat is not None:
            self._rise(seat)
            seat.close(why)


def _claim(gateway: WorkerId) -> tuple[list[Given], set[LeaseId]]:
    """On the thread: what was given, and which of it cannot be run because what it needs cannot be read."""
    given = service.claim(gateway)
    try:
        tasks = with_runs(with_upstream([each.task for each in given]))
    except DatabaseError as error:
        logger.warning("attempts are handed back, what they need cannot be read: %s", error)
        return given, {each.task.lease for each in given if each.task.has_parents or each.task.of_run}
    return [each._replace(task=task) for each, task in zip(given, tasks, strict=True)], set()


def _find(workers: list[WorkerId]) -> list[RemoteWorker | None]:
    known = service.find(workers)
    return [known.get(worker) for worker in workers]


def _renew(claims: list[Sequence[Claim]]) -> list[dict[LeaseId, Kept]]:
    kept = service.renew([claim for several in claims for claim in several])
    return [{c.lease: kept[c.lease] for c in several if c.lease in kept} for several in claims]


def _claim_of(lease: LeaseId, caller: Principal) -> Claim:
    return Claim(lease, caller.tenant_id, caller.pools)


def _owns(caller: Principal, seat: Seat | None) -> bool:
    """Whether the lease was handed out here to somebody whom the caller may speak for."""
    return seat is not None and caller.pools is None and caller.tenant_id in (None, seat.tenant)


async def _at_most(seconds: float, event: Awaitable[object]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event


_gateways: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Gateway]] = WeakKeyDictionary()


def gateway() -> Gateway:
    """The gateway of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _gateways.get(loop)
    if found is None:
        found = _gateways[loop] = Gateway(loop)
    return found
