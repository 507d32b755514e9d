"""The loop of an engine that foretells waits while it leads, on a thread and connection of its own. Decides nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from scheduler.engine.ahead import Ahead, LookedInVain
from scheduler.engine.db_thread import DbThread
from scheduler.services.forecast import Memory, renew_forecast

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

logger = logging.getLogger(__name__)

ROUND_S: Final = 1.0


class Forecaster:
    """Learns once a second, and looks ahead as often as that is worth its time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("forecast")
        self._ahead = Ahead()
        self._memory: Memory | None = None
        self._closing = False

    async def once(self) -> None:
        """One round, then rest until the next. Another leader's past is not this one's."""
        if self._engine.leading:
            try:
                self._memory = await self._db.call(renew_forecast, self._memory, look=self._ahead.foretell)
            except LookedInVain as error:
                if not self._closing:
                    logger.warning("no forecast this time: %s", error)
        else:
            self._memory = None
        await self._engine.rest(ROUND_S)

    def hurry(self) -> None:
        """Look ahead no more: the engine is about to end."""
        self._closing = True
        self._ahead.close()

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()
