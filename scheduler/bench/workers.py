"""Remote workers in crowds: how many no-op tasks per second go out to them and come back, and how evenly.

Web server and engine are processes of their own, as in production; the crowd is this process, on as few instructions as
will do, because it shares the machine.
"""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import orjson
from asgiref.sync import sync_to_async
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from scheduler.bench.world import Reading, fill, fresh_world, progress
from scheduler.models import Attempt, Pool, Task, Worker
from scheduler.policy.figures import quantile
from scheduler.services.tokens import create_token

READY_WITHIN_S: Final = 60.0


class Crowd:
    """Workers that report success at once. `done` counts acknowledged reports by worker."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.done: Counter[str] = Counter()

    async def socket(self, name: str, slots: int) -> None:
        """One worker on a websocket, which comes back as workers do."""
        while True:
            with suppress(OSError, WebSocketException):
                await self._socket(name, slots)
            await asyncio.sleep(random.uniform(0.2, 2.0))  # noqa: S311 - jitter

    async def _socket(self, name: str, slots: int) -> None:
        hello = {"type": "hello", "protocol": 1, "token": self.token, "owner": name, "pools": ["bench"], "slots": slots}
        url = f"ws://127.0.0.1:{self.port}/ws/worker/"
        async with connect(url, compression=None, proxy=None, open_timeout=READY_WITHIN_S) as line:
            await line.send(orjson.dumps(hello).decode())
            async for text in line:
                said = orjson.loads(text)
                match said["type"]:
                    case "lease":
                        await line.send(f'{{"type":"complete","lease_id":{said["lease_id"]},"result":null}}')
                    case "settled":
                        self.done[name] += "state" in said
                    case "ping":
                        await line.send(f'{{"type":"pong","n":{said["n"]}}}')

    async def poll(self, name: str, slots: int) -> None:
        """One worker that polls, over one connection, and reports with its next poll."""
        http = await Http.open(self.port, self.token)
        worker = (await http.post("/workers", {"owner": name, "pools": ["bench"], "slots": slots}))["id"]
        reports: list[dict[str, Any]] = []
        while True:
            news = await http.post(f"/workers/{worker}/lease?max={slots}&wait_s=20", {"reports": reports})
            self.done[name] += sum("state" in each for each in news.get("settled", ()))
            reports = [{"type": "complete", "lease_id": lease["lease_id"]} for lease in news["leases"]]


class Http:
    """One connection that stays open. Just enough HTTP for answers that say their length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader = reader
        self._writer = writer
        self._token = token

    @classmethod
    async def open(cls, port: int, token: str) -> Http:
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port), token)

    async def post(self, path: str, body: object) -> dict[str, Any]:
        """One request and its decoded answer."""
        data = orjson.dumps(body)
        head = f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        at = answer.index(b"content-length:") + 15
        text = await self._reader.readexactly(int(answer[at : answer.index(b"\r\n", at)]))
        said: dict[str, Any] = orjson.loads(text)
        return said


async def workers(*, sockets: int = 200, polls: int = 200, slots: int = 10, tasks: int = 40_000) -> list[Reading]:
    """Tasks per second through a crowd of remote workers, and how evenly they share them."""
    settings = {"sockets": sockets, "polls": polls, "slots": slots, "tasks": tasks}
    token, tenants = await sync_to_async(_world)(slots=slots * (sockets + polls))
    with product() as port:
        crowd = Crowd(port, token)
        members = [asyncio.create_task(crowd.socket(f"socket-{n}", slots)) for n in range(sockets)]
        members += [asyncio.create_task(crowd.poll(f"poll-{n}", slots)) for n in range(polls)]
        await asyncio.to_thread(_wait_until_connected, sockets + polls)
        await sync_to_async(fill)(tenants, tasks, what="fill", limited=False)
        began, before = time.perf_counter(), sum(crowd.done.values())
        left = tasks - before
        while sum(crowd.done.values()) < tasks:
            await asyncio.sleep(0.05)
            progress("workers", sum(crowd.done.values()), tasks)
            for member in members:
                if member.done():
                    member.result()
        took_s = time.perf_counter() - began
        for member in members:
            member.cancel()
        await asyncio.gather(*members, return_exceptions=True)
    twice = await sync_to_async(lambda: Attempt.objects.count() - Task.objects.filter(state="succeeded").count())()
    return [
        Reading("workers", left / took_s, "tasks/s", settings),
        *_evenness("workers_socket", [crowd.done[f"socket-{n}"] for n in range(sockets)], settings),
        *_evenness("workers_poll", [crowd.done[f"poll-{n}"] for n in range(polls)], settings),
        Reading("workers_attempts_beyond_one", twice, "attempts", settings),
    ]


def _evenness(name: str, done: list[int], settings: dict[str, Any]) -> list[Reading]:
    """How much each worker of a kind did."""
    if not done:
        return []
    values = [float(count) for count in done]
    return [Reading(f"{name}_p{p}", quantile(values, p / 100), "tasks", settings) for p in (5, 50, 95)]


def _world(*, slots: int) -> tuple[str, list[Any]]:
    tenants = fresh_world(slots=slots)
    Pool.objects.update(executor="remote")
    return create_token(scopes=["work"], actor="bench").text, tenants


def _wait_until_connected(count: int) -> None:
    give_up_at = time.monotonic() + READY_WITHIN_S
    while (there := Worker.objects.filter(kind="remote").exclude(slots={}).count()) < count:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{there} of {count} workers are connected after {READY_WITHIN_S:g} s")
        time.sleep(0.2)


@contextmanager
def product() -> Iterator[int]:
    """A web process and an engine process on this database; the port."""
    port = _free_port()
    web = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "cronoq_app.asgi:application"]
    with ExitStack() as stack:
        for command in (web, [sys.executable, "manage.py", "engine"]):
            stack.enter_context(_running(command))
        give_up_at = time.monotonic() + READY_WITHIN_S
        while not _answers(port):
            if time.monotonic() > give_up_at:
                raise TimeoutError("the web process did not come up")
            time.sleep(0.2)
        yield port


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    log = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 - this very installation's commands
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
