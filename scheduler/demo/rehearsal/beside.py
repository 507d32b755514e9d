"""Keeps an eye on a rehearsal while its story is played."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def beside(*watches: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these beside the body, and end them with it. What one of them raised is raised at the end."""
    watching = [asyncio.create_task(watch) for watch in watches]
    try:
        yield
    finally:
        for task in watching:
            task.cancel()
        for task in watching:
            with suppress(asyncio.CancelledError):
                await task
