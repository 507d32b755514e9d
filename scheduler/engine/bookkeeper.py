"""Sums up what was spent, day by day, on the engine that leads. Decides nothing; any number may do it.

On a thread and a connection of its own: after a busy night there is a lot to sum up, and it holds nothing else up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.engine.db_thread import DbThread
from scheduler.services.summing import sum_up

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

REST_S: Final = 5.0
REST_BETWEEN_S: Final = 0.1


class Bookkeeper:
    """The loop of one engine that keeps the sums of the ledger."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("sums")

    async def once(self) -> None:
        """One stretch of the ledger, then rest: shortly while there is more."""
        more = self._engine.leading and await self._db.call(sum_up)
        await self._engine.rest(REST_BETWEEN_S if more else REST_S)

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()
