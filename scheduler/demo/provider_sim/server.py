"""Runs the simulator as a process: listens, tells where, stops cleanly.

Decides when the process ends: on SIGTERM or SIGINT, or when its standard input closes if it was asked to. It must never
leave a client waiting when it ends: connections are closed at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from scheduler.demo.provider_sim.app import App
from scheduler.demo.provider_sim.http1 import Connection
from scheduler.demo.provider_sim.settings import Settings
from scheduler.demo.provider_sim.state import State

BACKLOG: Final = 4096


def run(settings: Settings) -> int:
    """Serve until told to stop; the exit status. An address in use is a sentence on standard error, and status 1."""
    try:
        asyncio.run(serve(settings))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno is not None else str(error)
        print(f"The provider simulator cannot listen on port {settings.port}: {reason}", file=sys.stderr)  # noqa: T201 - for the operator
        return 1
    return 0


async def serve(settings: Settings) -> None:
    """Listen, print the URL, and serve until a signal comes."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    app, connections = App(State(settings)), set[Connection]()
    server = await loop.create_server(
        lambda: Connection(app, connections), settings.host, settings.port, backlog=BACKLOG
    )
    _announce(settings, server.sockets[0].getsockname()[1])
    if settings.exit_on_stdin_eof:
        await _watch_stdin(stop)
    await stop.wait()
    server.close()
    for connection in list(connections):
        connection.abort()


def _announce(settings: Settings, port: int) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{port}"
    if settings.url_file is not None:
        _write_whole(settings.url_file, url + "\n")
    print(f"provider simulator listening on {url}", flush=True)  # noqa: T201 - callers read this line


def _write_whole(path: Path, text: str) -> None:
    """A reader sees the whole text or no file."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


async def _watch_stdin(stop: asyncio.Event) -> None:
    class UntilEof(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
            stop.set()

    with suppress(ValueError):  # standard input that is a plain file cannot be watched, and never closes
        await asyncio.get_running_loop().connect_read_pipe(UntilEof, sys.stdin)
