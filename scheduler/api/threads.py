"""Runs what asks the database for async views: in a bounded pool, each call giving its connection back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from django.db import connection

T = TypeVar("T")

THREADS_MAX: Final = 8
_POOL: Final = ThreadPoolExecutor(max_workers=THREADS_MAX, thread_name_prefix="api")


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call that uses the database, without holding a thread or a connection before or after."""

    def run() -> T:
        try:
            return call()
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(_POOL, run)
