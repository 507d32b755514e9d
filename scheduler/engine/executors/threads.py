"""Threads for plain functions.

Decides on which thread a function runs: one that is idle, or a new one. A function that never ends keeps its thread
and nobody else's, and never keeps the process from ending: the threads are daemons.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final

from django.db import close_old_connections

from scheduler.engine.executors.base import Retryable

THREADS_MAX: Final = 1_024
"""Of one pool, those included whose function was given up and has not ended."""
IDLE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Job:
    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


class Threads:
    """The threads of one pool."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._alive = 0

    async def call(self, function: Callable[[], Any]) -> Any:
        """What the function returns or raises. Cancelled, it is disregarded: nothing can stop it.

        Raises Retryable when too many functions have not ended.
        """
        loop = asyncio.get_running_loop()
        job = _Job(function, loop, loop.create_future())
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._alive < THREADS_MAX:
                self._alive += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._alive}", daemon=True).start()
            else:
                raise Retryable(f"{self._alive} plain functions of this pool have not ended; no thread is left.", 1.0)
        self._jobs.put(job)
        return await job.done

    def close(self) -> None:
        """Let idle threads end."""
        with self._lock:
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._jobs.put(None)

    def _work(self) -> None:
        """Run what comes. A thread is idle while it waits; who takes it away from the idle ones owes it a job."""
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if not self._idle:
                        continue
                    self._idle -= 1
                break
            if job is None:
                break
            _run(job)
            with self._lock:
                self._idle += 1
        with self._lock:
            self._alive -= 1


def _run(job: _Job) -> None:
    value, error = None, None
    try:
        value = job.function()
    except BaseException as raised:  # noqa: BLE001 - whatever a handler raises is for its attempt to judge
        error = raised
    close_old_connections()
    # A loop that has closed waits for nothing any more.
    with suppress(RuntimeError):
        job.loop.call_soon_threadsafe(_tell, job.done, value, error)


def _tell(done: asyncio.Future[Any], value: object, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(value)
    elif isinstance(error, SystemExit) or (isinstance(error, Exception) and not isinstance(error, StopIteration)):
        done.set_exception(error)
    else:
        # These would mean something to the loop itself.
        done.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
