"""The engine's housekeeping: pools and leadership for every engine; reaping, snapshots and sweeping for the leader."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from scheduler.engine.attempt import Executor
from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.reads.engine import EngineView, engine_view
from scheduler.services import heartbeat
from scheduler.services.autoscale import autoscale
from scheduler.services.budgets import follow_burn
from scheduler.services.dead import fold_dead
from scheduler.services.graphs import tend
from scheduler.services.history import sample_history
from scheduler.services.missing import end_overdue_blocked
from scheduler.services.pools import end_pauses
from scheduler.services.routing import reroute
from scheduler.services.run_tending import tend_runs
from scheduler.services.settle import reap
from scheduler.services.snapshot import Counted, take_snapshot
from scheduler.services.sweep import sweep, vacuum

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

logger = logging.getLogger(__name__)

VACUUM_EVERY_ROUNDS: Final = 1
SWEEP_EVERY_ROUNDS: Final = 30
SAMPLE_EVERY_ROUNDS: Final = 15
ROUNDS_PER_TERM: Final = 3
"""A leader renews its term this often before it would end."""


class Maintenance:
    """The housekeeping of one engine, on a thread and connection of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("maintain")
        self._counted: Counted | None = None
        self._offered: dict[int, int] = {}
        self._rounds = 0
        self._retired: list[Executor] = []

    async def begin(self) -> None:
        """Learn the pools, announce this engine and see whether it leads. Repeated until it works."""
        await self._refresh()
        await self._lead()

    async def once(self) -> None:
        """One round, then rest until the next."""
        await self._lead()
        await self._refresh()
        self._rounds += 1
        if self._engine.leading:
            await self._tend()
        await self._engine.rest(self._interval_s())

    async def close(self) -> None:
        """Give up the connection and the executors that were replaced."""
        for executor in self._retired:
            await executor.aclose()
        self._db.close()

    def _interval_s(self) -> float:
        settings = self._engine.settings
        return min(settings.snapshot_s, settings.leader_ttl_s / ROUNDS_PER_TERM)

    async def _lead(self) -> None:
        engine = self._engine
        term = await self._db.call(heartbeat.lead, engine.id, ttl_s=engine.settings.leader_ttl_s)
        if (term is not None) != engine.leading:
            logger.info("this engine %s", f"leads, term {term}" if term is not None else "does not lead any more")
            engine.leading = term is not None
            self._counted = None
            engine.wake()

    async def _refresh(self) -> None:
        view: EngineView = await self._db.call(engine_view)
        engine = self._engine
        self._retired += engine.pools.update(view.pools, view.tenants)
        await self._close_idle()
        offers = dict(engine.pools.offers())
        if offers != self._offered:
            await self._db.call(
                heartbeat.register, engine.id, name=engine.name, kind="engine", slots=offers, labels=engine.labels
            )
            self._offered = {int(pool): slots for pool, slots in offers.items()}
            DOORBELL.ring(Bell.WORK)

    async def _close_idle(self) -> None:
        """Close executors that were replaced, once their last attempt has ended: an edit never touches what runs."""
        busy = {id(running.executor) for running in self._engine.held()}
        idle = [executor for executor in self._retired if id(executor) not in busy]
        self._retired = [executor for executor in self._retired if id(executor) in busy]
        for executor in idle:
            await executor.aclose()

    async def _tend(self) -> None:
        """What one engine does for all."""
        if await self._db.call(reap):
            DOORBELL.ring(Bell.WORK)
            DOORBELL.ring(Bell.SETTLED)
        if await self._db.call(tend):
            DOORBELL.ring(Bell.WORK)
        if await self._db.call(tend_runs):
            DOORBELL.ring(Bell.WORK)
        if await self._db.call(end_overdue_blocked):
            DOORBELL.ring(Bell.WORK)
            DOORBELL.ring(Bell.SETTLED)
        if await self._db.call(end_pauses):
            DOORBELL.ring(Bell.WORK)
        if await self._db.call(reroute):
            DOORBELL.ring(Bell.WORK)
        await self._db.call(fold_dead)
        if await self._db.call(autoscale):
            DOORBELL.ring(Bell.WORK)
        interval_s = self._engine.settings.snapshot_s
        pace = self._engine.settings.pace
        self._counted = await self._db.call(
            take_snapshot, self._counted, self._engine.holds, interval_s=interval_s, pace=pace
        )
        await self._now_and_then()

    async def _now_and_then(self) -> None:
        """What need not be done every second."""
        if self._rounds % SAMPLE_EVERY_ROUNDS == 0:
            await self._db.call(sample_history)
        if self._rounds % VACUUM_EVERY_ROUNDS == 0:
            await self._db.call(vacuum)
        if self._rounds % SWEEP_EVERY_ROUNDS == 0:
            await self._db.call(sweep)
            await self._db.call(follow_burn)
