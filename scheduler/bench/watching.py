"""Sockets that watch a live page: how soon they see what happens, and what many of them cost."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from django.db import connections
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from scheduler.bench.visits import Site
from scheduler.reads.snapshot import latest_snapshot
from scheduler.services.pools import pause_pool, resume_pool
from scheduler.services.snapshot import take_snapshot

OPENED_AT_ONCE: Final = 4
GIVE_UP_S: Final = 60.0
LEADS_WITHIN_S: Final = 180.0
PICTURES_SEEN: Final = 5
LOOKED_EVERY_S: Final = 0.05
AUTHOR: Final = "bench"


@dataclass(slots=True)
class Watchers:
    """Sockets that are open; what came in on them since they were opened."""

    open: list[ClientConnection] = field(default_factory=list)
    messages: int = 0
    characters: int = 0
    lost: int = 0


@asynccontextmanager
async def watching(site: Site, number: int, *, page: str = "overview", scope: str = "") -> AsyncIterator[Watchers]:
    """So many sockets on a page, opened some at a time, until the block ends."""
    watchers, gate = Watchers(), asyncio.Semaphore(OPENED_AT_ONCE)

    async def watch() -> None:
        async with gate:
            line = await _opened(site, page=page, scope=scope)
            watchers.open.append(line)
        async for message in line:
            watchers.messages += 1
            watchers.characters += len(message)
        watchers.lost += 1

    tasks = [asyncio.create_task(watch()) for _ in range(number)]
    try:
        async with asyncio.timeout(GIVE_UP_S + number / 2):
            while len(watchers.open) < number:
                await asyncio.sleep(0.1)
                for task in tasks:
                    if task.done():
                        task.result()
        yield watchers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for line in watchers.open:
            line.transport.abort()


async def _opened(site: Site, *, page: str, scope: str) -> ClientConnection:
    """A socket that has its first message. Comes back as browsers do when a busy server has no time for it."""
    while True:
        with suppress(OSError, WebSocketException, EOFError):
            line = await open_socket(site, page=page, scope=scope)
            await line.recv()
            return line
        await asyncio.sleep(random.uniform(0.2, 2.0))  # noqa: S311 - jitter


async def open_socket(site: Site, *, page: str, scope: str = "") -> ClientConnection:
    """One socket, as the console's script opens it."""
    url = f"ws://127.0.0.1:{site.port}/ws/ops/?page={page}&scope={scope}&seq=0&shape="
    headers = {"Cookie": site.cookie}
    origin = f"http://127.0.0.1:{site.port}"
    return await connect(
        url,
        additional_headers=headers,
        origin=origin,  # type: ignore[arg-type]  # a NewType of str
        compression=None,
        proxy=None,
        max_size=None,
        open_timeout=GIVE_UP_S,
        ping_interval=None,  # browsers do not; the server does
    )


def wait_for_pictures() -> None:
    """Return once an engine leads and writes pictures. Raises TimeoutError."""
    first, give_up_at = latest_snapshot(), time.monotonic() + LEADS_WITHIN_S
    while (newest := latest_snapshot()) is None or first is None or newest.seq < first.seq + PICTURES_SEEN:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"no engine wrote pictures within {LEADS_WITHIN_S:g} s")
        time.sleep(0.2)


async def first_changes(site: Site, times: int) -> list[float]:
    """Seconds from loading the overview to the first message that changes something on it."""
    found = []
    for _ in range(times):
        await asyncio.to_thread(site.visit, "/ops/")
        began = time.perf_counter()
        line = await open_socket(site, page="overview")
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await line.recv()
                await line.recv()
        finally:
            line.transport.abort()
        found.append(time.perf_counter() - began)
    return found


async def sights(site: Site, times: int, *, pool: str) -> list[float]:
    """Seconds from the commit of a change to the message that shows it to somebody who watches that pool's page."""
    found = []
    line = await open_socket(site, page="pool", scope=pool)
    try:
        await line.recv()
        for n in range(times):
            await asyncio.sleep(random.uniform(0.0, 1.0))  # noqa: S311 - wherever in the second
            sign = f"seen-{n}-of-{times}"
            began = await asyncio.to_thread(_pause, pool, sign)
            async with asyncio.timeout(GIVE_UP_S):
                while sign not in str(await line.recv()):
                    pass
            found.append(time.perf_counter() - began)
            await asyncio.to_thread(_resume, pool)
    finally:
        line.transport.abort()
    return found


def _pause(pool: str, reason: str) -> float:
    pause_pool(pool, actor=AUTHOR, reason=reason)
    return time.perf_counter()


def _resume(pool: str) -> None:
    resume_pool(pool, actor=AUTHOR)


@contextmanager
def stirred(pool: str) -> Iterator[None]:
    """A pool is paused or resumed after each picture until the block ends, so that every one shows something new."""

    def stir(stop: threading.Event) -> None:
        seen, paused = 0, False
        while not stop.wait(LOOKED_EVERY_S):
            newest = latest_snapshot()
            if newest is not None and newest.seq != seen:
                seen, paused = newest.seq, not paused
                _pause(pool, "stirred") if paused else _resume(pool)
        _resume(pool)

    with _beside(stir):
        yield


@contextmanager
def pictures() -> Iterator[None]:
    """A new picture each second, as the leading engine writes it, until the block ends: nothing else writes."""

    def write(stop: threading.Event) -> None:
        counted = None
        while not stop.wait(1.0):
            counted = take_snapshot(counted, {}, interval_s=1.0)

    with _beside(write):
        yield


@contextmanager
def _beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Work in a thread and on a connection of its own until the block ends."""
    stop = threading.Event()

    def run() -> None:
        try:
            work(stop)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
