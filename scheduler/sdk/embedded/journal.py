"""Sees what happens to the tasks that this scheduler submitted or runs, while somebody reads its events.

What runs here is seen as it happens; the rest is looked up when something was settled, and from time to time, so a
state that lasts for a few milliseconds only may be passed over. Ends never are. It must cost nothing while nobody
reads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError

from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import TaskId
from scheduler.reads.tasks import states_of
from scheduler.sdk.events import Event, EventStream, OnLag

logger = logging.getLogger(__name__)

TICK_S: Final = 0.1
RETRY_S: Final = 0.5
ASKED_MAX: Final = 5_000


@dataclass(slots=True)
class _Seen:
    status: str
    attempt: int
    pool: str
    kind: str
    key: str | None


class Journal:
    """The events of one scheduler. To be used from its loop; `started` from any thread."""

    def __init__(self, *, capacity: int, transitions: bool, own_pools: Collection[str]) -> None:
        self._own_pools = own_pools
        self._capacity = capacity
        self._transitions = transitions
        self._loop = asyncio.get_running_loop()
        self._db = DbThread("sdk-events")
        self._streams: set[EventStream] = set()
        self._seen: dict[TaskId, _Seen] = {}
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._offs = [DOORBELL.on(bell, self._on_bell) for bell in Bell]

    def open(self, on_lag: OnLag) -> EventStream:
        """A reader of what happens from now on."""
        stream = EventStream(self._capacity, on_lag, self._leave)
        self._streams.add(stream)
        if self._task is None:
            self._task = self._loop.create_task(self._look_while_read(), name="sdk events")
        return stream

    async def close(self) -> None:
        """Tell what has happened until now, then end all readers."""
        for off in self._offs:
            off()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            with suppress(DatabaseError):
                await self._look()
        for stream in list(self._streams):
            stream.end()
        self._db.close()

    def submitted(self, task: TaskId, state: TaskState, *, pool: str, kind: str, key: str | None) -> None:
        """A task was stored."""
        if self._streams and task not in self._seen:
            self._seen[task] = _Seen("", 0, pool, kind, key)
            self._note(task, state.value)

    def started(self, attempt: Any) -> None:
        """An attempt begins here."""
        if self._streams:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._begin, attempt)

    def _begin(self, attempt: Any) -> None:
        seen = self._seen.get(attempt.task_id)
        if seen is None:
            seen = self._seen[attempt.task_id] = _Seen("", 0, attempt.pool, attempt.kind, attempt.key)
        elif attempt.attempt > 1 and seen.status == TaskState.RUNNING and seen.attempt < attempt.attempt:
            # The rest before this attempt was too short to be seen.
            self._note(attempt.task_id, TaskState.RETRYING.value)
        if seen.attempt < attempt.attempt:
            seen.attempt = attempt.attempt
            self._note(attempt.task_id, TaskState.RUNNING.value)

    async def _look_while_read(self) -> None:
        while True:
            self._rung.clear()
            began = self._loop.time()
            try:
                await self._look()
                pause_s = TICK_S
            except DatabaseError as error:
                logger.warning("events cannot be looked up; trying again: %s", error)
                pause_s = RETRY_S
            # At most half the time goes into looking.
            await asyncio.sleep(min(pause_s, self._loop.time() - began))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._rung.wait()

    async def _look(self) -> None:
        wanted = list(self._seen)
        for first in range(0, len(wanted), ASKED_MAX):
            part = wanted[first : first + ASKED_MAX]
            states = await self._db.call(states_of, part)
            for task in part:
                state = states.get(task)
                if state is None:
                    self._seen.pop(task, None)
                elif task in self._seen and not (
                    state is TaskState.RUNNING and self._seen[task].pool in self._own_pools
                ):
                    # What runs here is told by the attempt itself, which knows its number.
                    self._note(task, state.value)

    def _note(self, task: TaskId, status: str) -> None:
        seen = self._seen[task]
        if seen.status == status:
            return
        seen.status = status
        ended = status in TERMINAL
        if ended or self._transitions:
            event = Event(task, status, seen.attempt, seen.pool, seen.kind, seen.key, time.time())
            for stream in self._streams:
                stream.put(event)
        if ended:
            del self._seen[task]

    def _leave(self, stream: EventStream) -> None:
        self._streams.discard(stream)
        if not self._streams:
            self._seen.clear()

    def _on_bell(self) -> None:
        # Called from the doorbell's threads; a loop that has closed waits for nothing any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._rung.set)
