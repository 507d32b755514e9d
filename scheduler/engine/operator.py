"""Works off operations on many tasks, on the engine that leads. Decides nothing; any number may do it.

On a thread and a connection of its own, so that a large operation holds nothing else up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.services.operating import work_operations

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

WORK_EVERY_S: Final = 0.1
LOOK_EVERY_S: Final = 1.0


class Operator:
    """The loop of one engine that does what operators ask for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("operations")

    async def once(self) -> None:
        """One round, then rest: shortly while an operation is under way."""
        if not self._engine.leading:
            await self._engine.rest(LOOK_EVERY_S)
            return
        worked = await self._db.call(work_operations)
        if worked.applied:
            self._engine.wake()
            DOORBELL.ring(Bell.WORK)
        await self._engine.rest(WORK_EVERY_S if worked.busy else LOOK_EVERY_S)

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()
