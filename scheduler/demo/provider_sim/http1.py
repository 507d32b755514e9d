"""HTTP/1.1 connections on asyncio.

Decides one request at a time, keep-alive, pipelining in order, and that a handler is cancelled when its client goes
away. It must never know what the requests mean.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Final, cast

from scheduler.demo.provider_sim.http_request import BadRequest, Request, RequestReader

logger = logging.getLogger(__name__)

Headers = Iterable[tuple[str, str]]

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class Exchange:
    """The answer to one request, while it is written."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._request = request
        self._chunked = False
        self.whole = False

    @property
    def keeps_connection(self) -> bool:
        """Whether another request may follow on this connection."""
        return self.whole and self._request.keep_alive

    def reply(self, status: int, headers: Headers, body: bytes) -> None:
        """Write a whole answer in one piece."""
        head = self._head(status, [*headers, ("content-length", str(len(body)))])
        self.whole = True
        self._connection.write(head if self._request.method == "HEAD" else head + body)

    def reply_partly(self, status: int, headers: Headers, body: bytes, *, sent: int) -> None:
        """Promise a whole answer, write `sent` bytes of its body, and close."""
        self._connection.write(self._head(status, [*headers, ("content-length", str(len(body)))]) + body[:sent])
        self._connection.close()

    def start(self, status: int, headers: Headers) -> None:
        """Write the head of an answer whose length is not known."""
        self._chunked = self._request.chunks_known
        framing = [("transfer-encoding", "chunked")] if self._chunked else []
        self._connection.write(self._head(status, [*headers, *framing]))

    def write(self, data: bytes) -> None:
        """Write a part of the body; not an empty one, which would end it."""
        self._connection.write(self._framed(data))

    def end(self, data: bytes) -> None:
        """Write the last part of the body, and the end of the answer with it."""
        self.whole = True
        self._connection.write(self._framed(data) + (b"0\r\n\r\n" if self._chunked else b""))

    def break_off(self) -> None:
        """Close the connection after what has been written, however much of the answer is missing."""
        self._connection.close()

    def reset(self) -> None:
        """Close the connection at once, dropping what has not been sent."""
        self._connection.abort()

    def _head(self, status: int, headers: Headers) -> bytes:
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if not self._request.keep_alive:
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data


Handler = Callable[[Request, Exchange], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler = handler
        self._connections = connections
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
        """The client went away: whatever is being done for it stops."""
        self._transport = None
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        self._reader.feed(data)
        if self._task is None:
            self._serve_next()

    def write(self, data: bytes) -> None:
        """Send, unless the client has gone."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Close once everything written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _serve_next(self) -> None:
        try:
            request = self._reader.take()
        except BadRequest as refusal:
            head = f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}"
            self.write(f"{head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode("ascii"))
            self.close()
            return
        if request is not None:
            self._task = asyncio.get_running_loop().create_task(self._serve(request))
        elif self._reader.wants_go_ahead():
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _serve(self, request: Request) -> None:
        exchange = Exchange(self, request)
        try:
            await self._handler(request, exchange)
        except Exception:
            # The edge of the process: one broken request must not take the simulator down.
            logger.exception("a request failed")
        self._task = None
        if not exchange.keeps_connection:
            self.close()
        elif self._transport is not None and not self._transport.is_closing():
            self._serve_next()
