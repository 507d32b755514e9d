"""Puts what was told in order and forgets what is old, on the engine that leads. Decides nothing; any number may do it.

On a thread and a connection of its own, so that neither housekeeping nor a crowd of events holds the other up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.engine.db_thread import DbThread
from scheduler.services.events import EVENTS_PER_ROUND_MAX, forget_events, publish

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

PUBLISH_EVERY_S: Final = 0.2
FORGET_EVERY_ROUNDS: Final = 5


class Herald:
    """The loop of one engine that gives events their places."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("herald")
        self._rounds = 0

    async def once(self) -> None:
        """One round, then rest, unless more is waiting than one round takes."""
        if not self._engine.leading:
            await self._engine.rest(1.0)
            return
        published = await self._db.call(publish)
        self._rounds += 1
        if self._rounds % FORGET_EVERY_ROUNDS == 0:
            await self._db.call(forget_events)
        if published < EVENTS_PER_ROUND_MAX:
            await self._engine.rest(PUBLISH_EVERY_S)

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()
