"""What tests of the embedded scheduler share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], object | Awaitable[object]], *, timeout_s: float = 20.0) -> None:
    """Wait on the loop until a condition holds, asked every 10 ms. Raises TimeoutError."""
    async with asyncio.timeout(timeout_s):
        while True:
            answer = condition()
            if await answer if isinstance(answer, Awaitable) else answer:
                return
            await _beat()


async def _beat() -> None:
    loop = asyncio.get_running_loop()
    beat = loop.create_future()
    loop.call_later(0.01, beat.set_result, None)
    await beat
