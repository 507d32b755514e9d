"""Wakes those who read events over a socket when there is something for them. One hub per event loop.

It holds no events: whoever is woken reads its own, from where it is, and the database is the only buffer. It must never
run while nobody listens, and a failure of one round must never end it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from django.db import close_old_connections

from scheduler.policy.types import TenantId
from scheduler.reads.events import newest
from scheduler.services.events import listen, publish

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.1
RENEW_EVERY_S: Final = 60.0
"""Far below the time for which transitions go on being told after the last listener went."""
THREADS_MAX: Final = 4

_THREADS: Final = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="event-feed")
T = TypeVar("T")


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a query in one of the feed's few threads."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(_with_connection, function, *args))


def _with_connection(function: Callable[..., T], *args: Any) -> T:
    try:
        return function(*args)
    finally:
        # Back to the pool: threads that idle keep none.
        close_old_connections()


class Ear:
    """One listener: the events of a tenant, or of all (None)."""

    def __init__(self, tenant: TenantId | None) -> None:
        self.tenant = tenant
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There may be something new."""
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for news, but not for longer; whether there are any."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class EventHub:
    """The listeners of one event loop, and the one who looks for all of them."""

    def __init__(self) -> None:
        self._ears: set[Ear] = set()
        self._task: asyncio.Task[None] | None = None
        self._seen = 0
        self._renew_at = 0.0

    async def join(self, ear: Ear) -> None:
        """Listen; transitions are told when this returns."""
        await in_thread(listen, ear.tenant)
        self._ears.add(ear)
        if self._task is None or self._task.done():
            self._renew_at = time.monotonic() + RENEW_EVERY_S
            self._task = asyncio.create_task(self._run(), name="event feed")

    def leave(self, ear: Ear) -> None:
        """Listen no more."""
        self._ears.discard(ear)

    async def step(self) -> None:
        """Look once, and wake those for whom there is news."""
        if time.monotonic() >= self._renew_at:
            for tenant in {ear.tenant for ear in self._ears}:
                await in_thread(listen, tenant)
            self._renew_at = time.monotonic() + RENEW_EVERY_S
        self._seen, news = await in_thread(_look, self._seen)
        for ear in list(self._ears):
            if news and (ear.tenant is None or ear.tenant in news):
                ear.wake()

    async def _run(self) -> None:
        while self._ears:
            try:
                await self.step()
            except Exception:
                log.exception("A round of the event feed failed; the next one tries again")
            await asyncio.sleep(LOOK_EVERY_S)


def _look(seen: int) -> tuple[int, dict[int, int]]:
    publish()
    return newest(seen)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, EventHub] = WeakKeyDictionary()


def event_hub() -> EventHub:
    """The hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), EventHub())
