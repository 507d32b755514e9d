"""What an engine does beside starting and settling work, each in a loop, on a thread and a connection of its own.

Decides nothing: it names the loops, and ends them together. None of them may hold another up, nor dispatch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from scheduler.engine.bookkeeper import Bookkeeper
from scheduler.engine.forecaster import Forecaster
from scheduler.engine.herald import Herald
from scheduler.engine.operator import Operator
from scheduler.engine.postman import Postman
from scheduler.engine.timekeeper import Timekeeper

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine


class Sidelines:
    """The side loops of one engine. Each works only while the engine leads."""

    def __init__(self, engine: Engine) -> None:
        self._timekeeper = Timekeeper(engine)
        self._forecaster = Forecaster(engine)
        self._herald = Herald(engine)
        self._postman = Postman(engine)
        self._operator = Operator(engine)
        self._bookkeeper = Bookkeeper(engine)

    def steps(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """One round of each, by name."""
        return {
            "schedules": self._timekeeper.once,
            "forecast": self._forecaster.once,
            "events": self._herald.once,
            "webhooks": self._postman.once,
            "operations": self._operator.once,
            "sums": self._bookkeeper.once,
        }

    def hurry(self) -> None:
        """Cut short what takes long: the engine is told to stop."""
        self._forecaster.hurry()

    async def close(self) -> None:
        """Give up what they hold, when their loops have ended."""
        self._timekeeper.close()
        self._forecaster.close()
        self._herald.close()
        self._operator.close()
        self._bookkeeper.close()
        await self._postman.close()
