"""Connections to one provider: one for each call in flight, kept for the next.

Decides which connection a call gets: the one used last, or a new one. A call never waits for a connection, because how
many run at once is the engine's to say. Every connection is a pool of one, since the client's own pool looks at all of
its connections for each call: with 200 of them that was most of a call's cost.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Final, cast

import httpx2 as httpx

IDLE_CONNECTIONS_MAX: Final = 200
IDLE_S_MAX: Final = 30.0
"""Providers close idle connections too; a shorter life here means that fewer calls find theirs closed."""


class Connections(httpx.AsyncBaseTransport):
    """A stack of connections; those at its bottom are closed when they have been idle for too long."""

    def __init__(self, *, proxy: str | None) -> None:
        self._proxy = proxy
        # Now rather than with the first call: calls that start late bunch with those behind them, and a provider that
        # enforces the declared rate would count more of them in a moment than were started in one.
        self._authorities = trusted_authorities()
        self._idle: deque[tuple[float, httpx.AsyncHTTPTransport]] = deque()
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send on the connection that was used last; it comes back when the answer is closed."""
        connection = self._idle.pop()[1] if self._idle else self._open()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await connection.aclose()
            raise
        body = cast("httpx.AsyncByteStream", response.stream)
        response.stream = _Returning(body, lambda: self._take_back(connection), connection.aclose)
        return response

    async def aclose(self) -> None:
        """Close what is idle, now and from now on; a call in flight is not disturbed."""
        self._closed = True
        await self._close_idle()

    async def _take_back(self, connection: httpx.AsyncHTTPTransport) -> None:
        self._idle.append((time.monotonic(), connection))
        await self._close_idle()

    async def _close_idle(self) -> None:
        while self._idle and (
            self._closed or len(self._idle) > IDLE_CONNECTIONS_MAX or time.monotonic() - self._idle[0][0] > IDLE_S_MAX
        ):
            await self._idle.popleft()[1].aclose()

    def _open(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=self._authorities,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=IDLE_S_MAX),
            trust_env=False,
            proxy=self._proxy,
        )


class _Returning(httpx.AsyncByteStream):
    """An answer's body that gives its connection back when it is closed, or closes that when it cannot be."""

    def __init__(
        self,
        body: httpx.AsyncByteStream,
        give_back: Callable[[], Awaitable[None]],
        give_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._body = body
        self._give_back = give_back
        self._give_up = give_up

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            yield piece

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        except BaseException:
            await self._give_up()
            raise
        await self._give_back()


@cache
def trusted_authorities() -> ssl.SSLContext:
    """The system's certificate authorities, read once: it takes a while, and pools are made on the event loop."""
    return httpx.create_ssl_context()
