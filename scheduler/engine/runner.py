"""The engine: long-lived loops that call services, run attempts and report them. No SQL, no decisions.

- dispatch: the leader plans when rung, when a slot frees, or when the clock makes a start possible; every engine picks
  up what another one's plan gave it.
- settle: reports of ended attempts go to the database in batches.
- maintain: leadership, pools, and for the leader the reaper, the snapshot and the sweeping.
- schedules: the leader submits what is due at its time.
- forecast: the leader looks ahead.
- events: the leader puts what was told in order; webhooks: it posts that on.
- fence: stops what runs under a lease that could not be renewed in time, before it may run elsewhere.
- renewal: in a thread of its own (`renewal`).

Crash-only: everything an engine knows can be lost; leases expire and another engine goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from django.db import DatabaseError

from scheduler.engine.attempt import Running, Stop
from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.engine.equipping import equipped, handed_back
from scheduler.engine.executors.python import Handler
from scheduler.engine.maintenance import Maintenance
from scheduler.engine.outbox import Outbox
from scheduler.engine.pools import Pools
from scheduler.engine.renewal import Renewal
from scheduler.engine.settings import EngineSettings
from scheduler.engine.sidelines import Sidelines
from scheduler.engine.steps import Desk
from scheduler.policy.admission import worker_labels
from scheduler.policy.lanebook import LaneBook
from scheduler.policy.types import Hold, LeasedTask, LeaseId, PoolId, WorkerId
from scheduler.services import heartbeat
from scheduler.services.dispatch import Dispatched, dispatch

logger = logging.getLogger(__name__)

BACKOFF_MAX_S: Final = 1.0
REST_MAX_S: Final = 0.1
FENCE_EVERY_S: Final = 0.1
SETTLE: Final = "settle"
LAST_TRIES_S: Final = 5.0
"""How long a loop that is asked to stop goes on trying: the database may not come back in time."""


class Engine:
    """One engine process's work. `handlers` maps pool names to functions, before what the pools' settings name.

    `only_handlers`: serve no other pools than those; other engines do. With `labels` it takes tasks that ask for them
    too, and with `offers` so many slots by pool name, instead of all that the pool may have.
    """

    def __init__(
        self,
        *,
        handlers: Mapping[str, Handler] | None = None,
        settings: EngineSettings | None = None,
        only_handlers: bool = False,
        labels: Mapping[str, str] | None = None,
        offers: Mapping[str, int] | None = None,
    ) -> None:
        self.id = WorkerId(str(uuid.uuid4()))
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.settings = settings or EngineSettings.from_config()
        self.pools = Pools(handlers or {}, only_handlers=only_handlers, offers=offers)
        self.labels = worker_labels(labels) if labels else None
        self.leading = False
        self.holds: dict[PoolId, Hold] = {}
        self.settled = 0
        self._running: dict[LeaseId, Running] = {}
        self._pick_up_at = 0.0
        self._waiting = True
        self._book: LaneBook | None = None
        self._draining = False
        self._abandoned = False
        self._desk = Desk()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then finish or hand back what runs. Setting `abandon` skips the waiting."""
        self._loop = asyncio.get_running_loop()
        self._stopping = stop
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._dispatch_db = DbThread("dispatch")
        self._settle_db = DbThread("settle")
        self._outbox = Outbox(self._settle_db, batch_max=self.settings.settle_batch_max)
        self._renewal = Renewal(self.id, self, register=self._register)
        maintenance = Maintenance(self)
        sidelines = Sidelines(self)
        off = [
            DOORBELL.on(Bell.WORK, self._rung),
            DOORBELL.on(Bell.GIVEN, self._given),
            DOORBELL.on(Bell.SETTLED, self._slots_freed),
        ]
        await self._until_done(maintenance.begin, stop)
        self._renewal.start()
        ending = asyncio.Event()
        to_the_end = [
            asyncio.create_task(self._forever(SETTLE, self._settle_once, ending)),
            asyncio.create_task(self._forever("fence", self._fence_once, ending)),
        ]
        loops = [
            asyncio.create_task(self._forever("dispatch", self._dispatch_once, stop)),
            asyncio.create_task(self._forever("maintain", maintenance.once, stop)),
            *(asyncio.create_task(self._forever(name, step, stop)) for name, step in sidelines.steps().items()),
        ]
        await stop.wait()
        sidelines.hurry()
        self._draining = True
        self._work.set()
        await asyncio.gather(*loops)
        await self._bow_out()
        await self._wind_down()
        ending.set()
        self._outbox.hurry()
        await asyncio.gather(*to_the_end)
        self._renewal.stop()
        for take_off in off:
            take_off()
        self._desk.close()
        await sidelines.close()
        await self._leave(maintenance)

    def abandon(self) -> None:
        """Do not wait for running attempts: hand them back at once. Safe from any thread."""
        self._abandoned = True
        self._loop.call_soon_threadsafe(self._halt_all, Stop.SHUTDOWN)

    # Dispatch

    async def _dispatch_once(self) -> None:
        """Plan or pick up, then sleep until there is reason to look again."""
        self._work.clear()
        began = self._loop.time()
        if not self.leading:
            self._book = None
            await self._pick_up()
            await self._until_work(self.settings.poll_s)
            return
        # Until the plan is known, a slot that frees may be what it lacked.
        self._waiting = True
        done = await self._dispatch_db.call(self._plan)
        self.holds = done.holds
        self._waiting = done.waiting
        self._begin([task for task in done.leased if task.worker == self.id])
        if any(task.worker != self.id for task in done.leased):
            DOORBELL.ring(Bell.GIVEN)
        if self._loop.time() >= self._pick_up_at:
            # A plan made elsewhere, by who led before or thinks it still does, may have given us work too.
            await self._pick_up()
        if done.again:
            return
        took_s = self._loop.time() - began
        if not done.leased:
            # A plan that starts nothing is not repeated at once, however often the bell rings: at most half the
            # time goes into looking.
            await asyncio.sleep(min(took_s, REST_MAX_S))
        await self._until_work(self._pause_s(done, took_s))

    async def _pick_up(self) -> None:
        self._pick_up_at = self._loop.time() + self.settings.poll_s
        self._begin(await self._dispatch_db.call(self._take_given))

    def _plan(self) -> Dispatched:
        """On the dispatch thread: leases are held from here on, also while user code holds the loop."""
        # A book whose dispatch did not end well is not believed.
        book, self._book = self._book or LaneBook(), None
        done = dispatch(me=self.id, starts_max=self.settings.starts_max, book=book)
        self._book = book
        self._hold([task for task in done.leased if task.worker == self.id])
        return done

    def _take_given(self) -> list[LeasedTask]:
        """On the dispatch thread, likewise."""
        return self._hold(heartbeat.pick_up(self.id))

    def _hold(self, leased: list[LeasedTask]) -> list[LeasedTask]:
        for task in equipped(leased):
            served = self.pools.get(task.pool)
            if served is not None:
                names = self.pools.names(served, task.tenant)
                self._running[task.lease] = Running(
                    task, names, served.executor, ttl_s=served.pool.lease_ttl_s, desk=self._desk
                )
        return leased

    def _pause_s(self, done: Dispatched, took_s: float) -> float:
        wake_at = done.wake_at()
        if wake_at is None:
            return self.settings.poll_s
        return max(0.0, min(self.settings.poll_s, wake_at - done.now - took_s))

    async def _until_work(self, seconds: float) -> None:
        await _at_most(seconds, self._work.wait())

    async def rest(self, seconds: float) -> None:
        """Wait so long, or until the engine is told to stop."""
        await _at_most(seconds, self._stopping.wait())

    def wake(self) -> None:
        """Look for work now."""
        self._work.set()

    def _rung(self) -> None:
        """The doorbell, from any thread."""
        with suppress(RuntimeError):
            # The loop may have closed between the ring and here: then nobody waits for work any more.
            self._loop.call_soon_threadsafe(self._work.set)
        if self._running:
            self._renewal.hurry()

    def _given(self) -> None:
        """A plan gave leases away; from any thread. Who leads finds its own in its own plan."""
        if not self.leading:
            self._rung()

    def _slots_freed(self) -> None:
        """Attempts have ended, here or elsewhere; from any thread. No reason to look when nothing waits for a slot."""
        if self.leading and self._waiting:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._work.set)

    # Attempts

    def _begin(self, leased: list[LeasedTask]) -> None:
        for task in leased:
            running = self._running.get(task.lease)
            if running is None:
                self._outbox.add(handed_back(task))
                continue
            if self._draining:
                running.halt(Stop.SHUTDOWN)
            self._idle.clear()
            running.task = self._loop.create_task(self._attempt(running))

    async def _attempt(self, running: Running) -> None:
        report = await running.run()
        if report is not None:
            self._outbox.add(report, running)
        self._running.pop(running.lease, None)
        if not self._running:
            self._idle.set()

    def held(self) -> list[Running]:
        """The attempts whose leases are to be kept; from any thread."""
        return [*self._running.values(), *self._outbox.held()]

    def halt(self, lease: LeaseId, why: Stop) -> None:
        """Stop an attempt, from any thread."""
        self._loop.call_soon_threadsafe(self._halt, lease, why)

    def _halt(self, lease: LeaseId, why: Stop) -> None:
        running = self._running.get(lease)
        if running is not None:
            running.halt(why)

    def _halt_all(self, why: Stop) -> None:
        for running in list(self._running.values()):
            running.halt(why)

    # Settle

    async def _settle_once(self) -> None:
        await self._outbox.wait()
        while self._outbox.waiting:
            settled = await self._outbox.send_batch()
            self.settled += len(settled.states)
            DOORBELL.ring(Bell.SETTLED)
            if settled.woken:
                # Tasks that came after these, or members of their groups that are to stop.
                DOORBELL.ring(Bell.WORK)

    async def _fence_once(self) -> None:
        now = time.monotonic()
        for running in list(self._running.values()):
            if running.may_be_lost(now):
                running.halt(Stop.FENCED)
        await asyncio.sleep(FENCE_EVERY_S)

    # Coming and going

    def _register(self) -> None:
        heartbeat.register(self.id, name=self.name, kind="engine", slots=self.pools.offers(), labels=self.labels)

    async def _bow_out(self) -> None:
        """Be given nothing more, and hand back what was given and has not begun."""
        try:
            await self._dispatch_db.call(heartbeat.drain, self.id)
            await self._pick_up()
        except DatabaseError as error:
            logger.warning("going without a word: %s", error)

    async def _wind_down(self) -> None:
        """Let attempts end within the grace, then hand back the rest."""
        if self._abandoned:
            self._halt_all(Stop.SHUTDOWN)
        await _at_most(self.settings.grace_s, self._idle.wait())
        self._halt_all(Stop.SHUTDOWN)
        await _at_most(self.settings.grace_s, self._idle.wait())
        if self._running:
            logger.warning("%d attempts did not stop; their leases will expire", len(self._running))

    async def _leave(self, maintenance: Maintenance) -> None:
        try:
            await self._settle_db.call(heartbeat.leave, self.id)
        except DatabaseError as error:
            logger.warning("left without a word: %s", error)
        for executor in self.pools.executors():
            await executor.aclose()
        self._dispatch_db.close()
        self._settle_db.close()
        await maintenance.close()
        DOORBELL.ring(Bell.WORK)

    async def _forever(self, name: str, step: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
        """Repeat a step until `stop`, and for settling until every report is in."""
        faults = 0
        give_up_at: float | None = None
        while not stop.is_set() or (name == SETTLE and self._outbox.waiting):
            if stop.is_set() and give_up_at is None:
                give_up_at = self._loop.time() + LAST_TRIES_S
            faults = await self._try(name, step, faults)
            if faults and give_up_at is not None and self._loop.time() > give_up_at:
                logger.error("%s gave up while stopping: what is left will be found by lease expiry", name)
                return

    async def _try(self, name: str, step: Callable[[], Awaitable[None]], faults: int = 0) -> int:
        """Take a step; returns the number of faults in a row. A fault is told once, then waited out with jitter."""
        try:
            await step()
        except Exception:
            if faults == 0:
                logger.exception("%s failed; trying again", name)
            pause_s = min(BACKOFF_MAX_S, 0.05 * 2 ** min(faults, 10))
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            return faults + 1
        if faults:
            logger.info("%s works again after %d faults", name, faults)
        return 0

    async def _until_done(self, step: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
        """Do a step once, however long the database takes to come."""
        once = asyncio.Event()

        async def and_done() -> None:
            await step()
            once.set()

        while not once.is_set() and not stop.is_set():
            await self._try("start", and_done)


async def _at_most(seconds: float, event: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event
    except TimeoutError:
        pass
