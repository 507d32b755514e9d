"""Ticks schedules at their nominal times, on the engine that leads. Decides nothing; any number may tick at once.

On a thread and a connection of its own, so that no other housekeeping makes an occurrence late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.services.ticking import tick

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

LOOK_EVERY_S: Final = 0.5
"""What a new schedule, and an occurrence that waits for a task to end, may have to wait for a look."""


class Timekeeper:
    """The loop of one engine that lets time pass for schedules."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("timekeeper")

    async def once(self) -> None:
        """One look, then rest until the next nominal time."""
        if not self._engine.leading:
            await self._engine.rest(LOOK_EVERY_S)
            return
        ticked = await self._db.call(tick)
        if ticked.submitted:
            self._engine.wake()
            DOORBELL.ring(Bell.WORK)
        if ticked.again:
            return
        ahead_s = LOOK_EVERY_S if ticked.next_at is None else ticked.next_at - ticked.now
        await self._engine.rest(max(0.0, min(LOOK_EVERY_S, ahead_s)))

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()
