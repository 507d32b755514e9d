"""Where a rehearsal plays: a provider, a payment service, a web process and engines, each a process of its own.

Decides how they find each other and when they are ready. The database is that of this process, empty but migrated.
It must never touch anything that it did not start.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
from asgiref.sync import sync_to_async
from django.conf import settings

from scheduler.demo.rehearsal.api import Api, RehearsalFailed
from scheduler.demo.rehearsal.loopback import loopback_client
from scheduler.demo.rehearsal.programs import Program
from scheduler.policy.declarations import SCOPES
from scheduler.services.tokens import create_token

READY_TIMEOUT_S: Final = 60.0
LOOK_EVERY_S: Final = 0.1
HERE: Final = "127.0.0.1"


@dataclass(slots=True)
class Stage:
    """What is running. `environ` is what every process gets."""

    folder: Path
    environ: dict[str, str]
    api: Api
    provider_url: str
    payments_url: str
    programs: list[Program]
    engines: list[Program] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: count(1))

    async def start_engine(self) -> Program:
        """One more engine; returns once it offers its slots."""
        name = f"engine-{next(self._numbers)}"
        program = Program(name, [_manage(), "engine"], self.environ, self.folder / f"{name}.log")
        self.programs.append(program)
        self.engines.append(program)
        await until(lambda: self._is_registered(program), program)
        return program

    async def provider(self, path: str, body: object | None = None) -> Any:
        """Ask the provider's control routes: `stats`, `limits`, `faults`; with a body, set them."""
        return await _fetch(f"{self.provider_url}/{path}", body)

    async def payments(self) -> Any:
        """What the payment service tells."""
        return await _fetch(f"{self.payments_url}/refunds")

    async def _is_registered(self, program: Program) -> bool:
        status, answer = await self.api.ask("GET", "/snapshot")
        workers = answer["body"]["workers"] if status == 200 else []  # noqa: PLR2004 - there is one
        return any(str(worker["name"]).endswith(f":{program.pid}") for worker in workers)


async def until(condition: Callable[[], Any], program: Program, timeout_s: float = READY_TIMEOUT_S) -> None:
    """Return once the condition holds. Raises RehearsalFailed when the program ends first, or takes too long."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + timeout_s
    while not await condition():
        if not program.alive or loop.time() > give_up_at:
            raise RehearsalFailed(f"{program.name} did not come up:\n{program.tail()}")
        await asyncio.sleep(LOOK_EVERY_S)


@asynccontextmanager
async def stage(folder: Path, *, provider: Sequence[str] = (), environ: Mapping[str, str] = {}) -> AsyncIterator[Stage]:
    """Everything but engines, running until the block ends. `provider` are options of the provider simulator."""
    shared = {**os.environ, "PYTHONUNBUFFERED": "1", **environ}
    programs: list[Program] = []
    api: Api | None = None
    try:
        with _listener() as listener:
            payments_url = _url(listener)
            words = ["-m", "scheduler.demo.rehearsal.payments", str(listener.fileno())]
            payments = Program("payments", words, shared, folder / "payments.log", [listener.fileno()])
        programs.append(payments)
        provider_url = await _start_provider(folder, provider, shared, programs)
        shared["REHEARSAL_PAYMENTS"] = payments_url
        with _listener() as listener:
            url = _url(listener)
            shared["CRONOQ_ORIGINS"] = url
            words = ["-m", "daphne", "--fd", str(listener.fileno()), "cronoq_app.asgi:application"]
            web = Program("web", words, shared, folder / "web.log", [listener.fileno()])
        programs.append(web)
        token = await sync_to_async(create_token)(
            scopes=SCOPES, tenant=None, name="rehearsal", actor="rehearsal", source="system"
        )
        api = Api(url, token.text)
        await until(lambda: _answers(f"{url}/healthz"), web)
        await until(lambda: _answers(f"{payments_url}/refunds"), payments)
        yield Stage(folder, shared, api, provider_url, payments_url, programs)
    finally:
        if api is not None:
            api.close()
        for program in reversed(programs):
            await asyncio.to_thread(program.stop)


async def _start_provider(
    folder: Path, options: Sequence[str], environ: Mapping[str, str], programs: list[Program]
) -> str:
    file = folder / "provider.url"
    await asyncio.to_thread(file.unlink, missing_ok=True)  # of a rehearsal before, in a folder that is kept
    words = ["-m", "scheduler.demo.provider_sim", "--url-file", str(file), *options]
    program = Program("provider", words, environ, folder / "provider.log")
    programs.append(program)
    await until(lambda: _read(file), program)
    return await _read(file)


async def _read(file: Path) -> str:
    """What a small file holds; nothing while it is not there."""
    return await asyncio.to_thread(lambda: file.read_text(encoding="utf-8").strip() if file.exists() else "")


async def _answers(url: str) -> bool:
    try:
        async with loopback_client(5.0) as http:
            return (await http.get(url)).is_success
    except httpx.HTTPError:
        return False


async def _fetch(url: str, body: object | None = None) -> Any:
    async with loopback_client(READY_TIMEOUT_S) as http:
        answer = await (http.get(url) if body is None else http.post(url, json=body))
        answer.raise_for_status()
        return answer.json()


def _listener() -> socket.socket:
    """A socket on a free port of this machine; the program inherits it, so nobody else takes the port meanwhile."""
    return socket.create_server((HERE, 0), backlog=1024)


def _url(listener: socket.socket) -> str:
    return f"http://{HERE}:{listener.getsockname()[1]}"


def _manage() -> str:
    return str(Path(settings.BASE_DIR) / "manage.py")
