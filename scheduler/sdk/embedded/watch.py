"""Tells those who await tasks how they ended, at the price of one query per look for all of them.

It looks when attempts end, here or elsewhere, and from time to time. To be used from one loop only; it must never look
while nobody waits.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

import orjson
from django.db import DatabaseError

from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.reads.ends import EndRow, ends_of
from scheduler.sdk.declarations import Codec
from scheduler.sdk.errors import SchedulerError
from scheduler.sdk.handle import End

logger = logging.getLogger(__name__)

TICK_S: Final = 0.05
REST_MIN_S: Final = 0.002
RETRY_S: Final = 0.5
ASKED_MAX: Final = 5_000
"""Tasks in one query."""
WITHOUT_WORDS: Final = {
    TaskState.SKIPPED: "a task that it came after did not end as it needs",
    TaskState.MISSED: "it had not started in time",
    TaskState.SHED: "it made room for another",
}


class Watch:
    """The tasks that somebody on this loop waits for."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._db = DbThread("sdk-watch")
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[TaskId, asyncio.Future[End]] = {}
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._off = DOORBELL.on(Bell.SETTLED, self._on_settled)
        self._closed = False

    async def end_of(self, task: TaskId) -> End:
        """How the task ends, once it has. Raises SchedulerError when that cannot be known."""
        return await asyncio.shield(self._future(task))

    def known_end(self, task: TaskId) -> End | None:
        """How it ended as far as that was seen; it is looked for from now on."""
        future = self._future(task)
        return future.result() if future.done() and future.exception() is None else None

    async def close(self) -> None:
        """Wait for nothing any more. Whoever still waits is told so."""
        self._closed = True
        self._off()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        for task, future in self._waiting.items():
            if not future.done():
                future.set_exception(
                    SchedulerError(f"The scheduler was shut down before task {task} ended; it is kept and will go on.")
                )
                # Nobody may be there to look at it.
                future.exception()
        self._waiting.clear()
        self._db.close()

    def _future(self, task: TaskId) -> asyncio.Future[End]:
        if self._closed:
            raise SchedulerError("The scheduler was shut down; start it again to see how its tasks end.")
        future = self._waiting.get(task)
        if future is None:
            future = self._waiting[task] = self._loop.create_future()
            self._rung.set()
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._look_while_waited_for(), name="sdk watch")
        return future

    async def _look_while_waited_for(self) -> None:
        while self._waiting:
            self._rung.clear()
            began = self._loop.time()
            pause_s = await self._look()
            # At most half the time goes into looking, however often attempts end.
            await asyncio.sleep(max(REST_MIN_S, min(pause_s, self._loop.time() - began)))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._rung.wait()

    async def _look(self) -> float:
        """Tell those whose tasks have ended; returns how long to pause."""
        wanted = list(self._waiting)
        try:
            for first in range(0, len(wanted), ASKED_MAX):
                for row in await self._db.call(ends_of, wanted[first : first + ASKED_MAX]):
                    self._tell(row)
        except DatabaseError as error:
            logger.warning("tasks that are awaited cannot be looked up; trying again: %s", error)
            return RETRY_S
        return TICK_S

    def _tell(self, row: EndRow) -> None:
        future = self._waiting.pop(row.task, None)
        if future is None or future.done():
            return
        try:
            future.set_result(self._end(row))
        except Exception as error:  # noqa: BLE001 - whatever the codec raises is for who awaits the task
            future.set_exception(error)
            future.exception()

    def _end(self, row: EndRow) -> End:
        if row.state is None:
            raise SchedulerError(f"Task {row.task} is not kept any more, or never was.")
        if row.state is TaskState.SUCCEEDED:
            return End(row.state, self._codec.decode(orjson.loads(row.result or "null")))
        return End(row.state.value, message=row.message or WITHOUT_WORDS.get(row.state, ""))

    def _on_settled(self) -> None:
        # Called from the doorbell's threads; a loop that has closed waits for nothing any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._rung.set)
