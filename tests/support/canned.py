"""A server that answers every request with the bytes it was given, for answers that no well-behaved provider gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(slots=True)
class CannedServer:
    """What was asked of it. `closed` is released once for each connection that is closed."""

    url: str = ""
    connections: int = 0
    closed: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    heads: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    bodies: list[dict[str, object]] = field(default_factory=list)


def answer(body: object, *, status: int = 200, headers: str = "") -> bytes:
    """A whole answer; `body` is JSON, or text or bytes as they are."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


def event_stream(*events: object, end: bytes = b"0\r\n\r\n") -> bytes:
    """A streamed answer of these events (JSON, or text as it is); without `end` it stays open."""
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in (f"data: {text}\n\n".encode() for text in texts))
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + end


@asynccontextmanager
async def canned_server(reply: bytes, *, then_close: bool = False) -> AsyncIterator[CannedServer]:
    """Run one on a free port; `then_close` closes the connection after each answer."""
    canned = CannedServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        canned.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")
                )
                canned.heads.append(head)
                canned.raw.append(await reader.readexactly(length))
                canned.bodies.append(json.loads(canned.raw[-1]))
                writer.write(reply)
                await writer.drain()
                if then_close:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            canned.closed.release()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    canned.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield canned
