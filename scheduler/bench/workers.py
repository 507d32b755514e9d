"""Remote workers in crowds: how many no-op tasks per second go out and come back, how evenly, and what it costs.

Web server and engine are processes of their own, as in production; the crowd is this process.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from asgiref.sync import sync_to_async
from django.utils import timezone

from scheduler.bench.cpu import Cpu
from scheduler.bench.crowd import Crowd
from scheduler.bench.programs import running
from scheduler.bench.world import Reading, fill, fresh_world, progress
from scheduler.engine.doorbell import ring
from scheduler.models import Attempt, Pool, Task, Worker
from scheduler.policy.figures import quantile
from scheduler.services.tokens import create_token

READY_WITHIN_S: Final = 120.0


class Product(NamedTuple):
    """Web processes and an engine: ports, and process ids by part."""

    ports: list[int]
    pids: dict[str, list[int]]


async def workers(
    *, sockets: int = 200, polls: int = 200, slots: int = 10, tasks: int = 40_000, webs: int = 1
) -> list[Reading]:
    """Tasks per second through a crowd of remote workers, and how evenly they share them.

    `workers_cpu_…` is the processor time of each part for a thousand tasks; it says more than the clock where the
    machine has other things to do.
    """
    settings = {"sockets": sockets, "polls": polls, "slots": slots, "tasks": tasks, "webs": webs}
    token, tenants = await sync_to_async(_world)(slots=slots * (sockets + polls))
    with product(webs) as parts:
        crowd = Crowd(token)
        members = [
            asyncio.create_task(run(f"{kind}-{n}", slots, parts.ports[n % webs]))
            for kind, count, run in (("socket", sockets, crowd.socket), ("poll", polls, crowd.poll))
            for n in range(count)
        ]
        await asyncio.to_thread(_wait_until_connected, sockets + polls)
        await sync_to_async(fill)(tenants, tasks, what="fill", limited=False)
        cpu = await sync_to_async(Cpu)({"crowd": [os.getpid()], **parts.pids})
        began = time.perf_counter()
        await sync_to_async(_open)()
        await _drained(crowd, members, tasks)
        took_s = time.perf_counter() - began
        spent_s = await sync_to_async(cpu.spent_s)()
        for member in members:
            member.cancel()
        await asyncio.gather(*members, return_exceptions=True)
    twice = await sync_to_async(lambda: Attempt.objects.count() - Task.objects.filter(state="succeeded").count())()
    return [
        Reading("workers", tasks / took_s, "tasks/s", settings),
        *(Reading(f"workers_cpu_{part}", s / tasks * 1e6, "us/task", settings) for part, s in spent_s.items()),
        *_evenness("workers_socket", [crowd.done[f"socket-{n}"] for n in range(sockets)], settings),
        *_evenness("workers_poll", [crowd.done[f"poll-{n}"] for n in range(polls)], settings),
        Reading("workers_attempts_beyond_one", twice, "attempts", settings),
    ]


async def _drained(crowd: Crowd, members: list[asyncio.Task[None]], tasks: int) -> None:
    """Wait until that many are acknowledged; raises what ended one of the crowd."""
    while (done := sum(crowd.done.values())) < tasks:
        await asyncio.sleep(0.05)
        progress("workers", done, tasks)
        for member in members:
            if member.done():
                member.result()


def _evenness(name: str, done: list[int], settings: dict[str, Any]) -> list[Reading]:
    """How much each worker of a kind did."""
    if not done:
        return []
    values = [float(count) for count in done]
    return [Reading(f"{name}_p{p}", quantile(values, p / 100), "tasks", settings) for p in (5, 50, 95)]


def _world(*, slots: int) -> tuple[str, list[Any]]:
    """A pool that is paused until everything is laid out."""
    tenants = fresh_world(slots=slots)
    Pool.objects.update(executor="remote", paused_at=timezone.now())
    return create_token(scopes=["work"], actor="bench").text, tenants


def _open() -> None:
    Pool.objects.update(paused_at=None)
    ring()


def _wait_until_connected(count: int) -> None:
    give_up_at = time.monotonic() + READY_WITHIN_S
    while (there := Worker.objects.filter(kind="remote").exclude(slots={}).count()) < count:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{there} of {count} workers are connected after {READY_WITHIN_S:g} s")
        time.sleep(0.2)


@contextmanager
def product(webs: int = 1) -> Iterator[Product]:
    """Web processes and an engine process on this database."""
    ports = [_free_port() for _ in range(webs)]
    serve = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "cronoq_app.asgi:application", "-p"]
    with ExitStack() as stack:
        pids = {
            "web": [stack.enter_context(running([*serve, str(port)])) for port in ports],
            "engine": [stack.enter_context(running([sys.executable, "manage.py", "engine"]))],
        }
        give_up_at = time.monotonic() + READY_WITHIN_S
        while not all(map(_answers, ports)):
            if time.monotonic() > give_up_at:
                raise TimeoutError("the web process did not come up")
            time.sleep(0.2)
        yield Product(ports, pids)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
