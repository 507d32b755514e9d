"""Reads a streamed body event by event.

Decides when its reader gets to look up: after every piece, so that a cancellation is seen although nothing came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from typing import Final

import httpx2 as httpx

from scheduler.providers.sse import EventDecoder, ServerSentEvent

DRAIN_TIMEOUT_S: Final = 1.0


async def events_of(
    pieces: AsyncIterator[bytes], bound: Callable[[int], None]
) -> AsyncGenerator[ServerSentEvent | None, None]:
    """The events, and None after each piece of the body; `bound` is told the size so far and may raise."""
    decoder, size = EventDecoder(), 0
    async for piece in pieces:
        size += len(piece)
        bound(size)
        for event in decoder.feed(piece):
            yield event
        yield None


async def drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the end of a body whose answer is whole, after which the connection can be used again."""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            await anext(pieces, None)
