"""Running coroutines that use the database: in the one thread that asgiref keeps for that, whoever used it before."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.db import connections

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it on a loop of its own, with a connection of its own: a test before may have ended the one that is there."""

    async def whole() -> T:
        await database_sync_to_async(connections.close_all)()
        try:
            return await coroutine
        finally:
            await database_sync_to_async(connections.close_all)()

    return asyncio.run(whole())
