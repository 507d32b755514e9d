"""Lets many clients wait for tasks to end at the price of one query per tick for all of them.

One hub per event loop. It decides when to look: every `TICK_S` while somebody waits, sooner when attempts end in a
process that we hear of, less often when a look takes long. It must never hold a database connection while nobody waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from weakref import WeakKeyDictionary

from django.db import DatabaseError, connection

from scheduler.engine.db_thread import close_connection
from scheduler.engine.doorbell import on_settled
from scheduler.errors import Unavailable
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.reads.tasks import ended_of

logger = logging.getLogger(__name__)

TICK_S: Final = 0.05
GAP_S: Final = 0.005
"""Between two looks at least, however often attempts end."""
RESTS: Final = 4.0
"""A look is followed by a rest of so many times what it took, so that thousands who wait cost a fifth of a thread."""
REST_MAX_S: Final = 0.5
RETRY_S: Final = 0.5
"""Between looks while the database does not answer."""
WAITED_FOR_MAX: Final = 10_000

_Waiter = asyncio.Future[TaskState]


class WaitHub:
    """Those who wait on one event loop. To be used from that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiters: dict[TaskId, set[_Waiter]] = defaultdict(set)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wait-hub")
        self._rung = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    async def wait(self, task: TaskId, *, timeout_s: float) -> TaskState | None:
        """The terminal state that the task reaches within `timeout_s`, else None. At once when it has ended.

        Raises Unavailable when too many tasks are waited for.
        """
        if len(self._waiters) >= WAITED_FOR_MAX and task not in self._waiters:
            detail = "Too many clients wait for tasks here; ask for the task's state instead."
            raise Unavailable(detail, code="overloaded", retry_after_s=5.0)
        waiter: _Waiter = self._loop.create_future()
        self._waiters[task].add(waiter)
        self._rung.set()
        if self._watch is None:
            self._watch = self._loop.create_task(self._look_while_waited_for())
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter
        except TimeoutError:
            return None
        finally:
            self._leave(task, waiter)

    @property
    def waited_for(self) -> int:
        """How many tasks somebody waits for."""
        return len(self._waiters)

    def _leave(self, task: TaskId, waiter: _Waiter) -> None:
        self._waiters[task].discard(waiter)
        if not self._waiters[task]:
            del self._waiters[task]

    async def _look_while_waited_for(self) -> None:
        off = on_settled(self._on_settled)
        try:
            while self._waiters:
                self._rung.clear()
                began_s = self._loop.time()
                pause_s = await self._look()
                took_s = self._loop.time() - began_s
                if self._waiters:
                    await self._pause(pause_s, rest_s=min(REST_MAX_S, max(GAP_S, RESTS * took_s)))
        finally:
            off()
            self._watch = None
            await self._loop.run_in_executor(self._thread, close_connection)

    async def _look(self) -> float:
        """Answer those whose tasks have ended; returns how long to pause."""
        wanted = list(self._waiters)
        try:
            states = await self._loop.run_in_executor(self._thread, _ended, wanted)
        except DatabaseError as error:
            logger.warning("waiting tasks cannot be looked up: %s", error)
            return RETRY_S
        except Exception:
            logger.exception("waiting tasks cannot be looked up")
            return RETRY_S
        for task, state in states.items():
            for waiter in self._waiters.get(task, ()):
                if not waiter.done():
                    waiter.set_result(state)
        return TICK_S

    async def _pause(self, pause_s: float, *, rest_s: float) -> None:
        await asyncio.sleep(rest_s)
        try:
            async with asyncio.timeout(pause_s - rest_s):
                await self._rung.wait()
        except TimeoutError:
            return

    def _on_settled(self) -> None:
        # Called from the doorbell's thread; a loop that has closed waits for nothing any more.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._rung.set)


def _ended(tasks: Sequence[TaskId]) -> dict[TaskId, TaskState]:
    try:
        return ended_of(tasks)
    except DatabaseError:
        connection.close()
        raise


_hubs: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, WaitHub]] = WeakKeyDictionary()


def wait_hub() -> WaitHub:
    """The hub of the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = WaitHub(loop)
    return hub
