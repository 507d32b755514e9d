"""One thread with one database connection, on which a loop runs its services one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connection

P = ParamSpec("P")
R = TypeVar("R")


class DbThread:
    """Services are synchronous; a loop awaits them here. A broken connection is replaced before the next call."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def call(self, service: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a service to its end, even if the caller is cancelled meanwhile, and return its result."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._pool, lambda: _guarded(service, *args, **kwargs)))

    def close(self) -> None:
        """Let the last call end, then give the connection back."""
        self._pool.submit(connection.close)
        self._pool.shutdown(wait=True)


def _guarded(service: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        return service(*args, **kwargs)
    except Exception:
        # The connection may be the reason; Django marks it, and drops it here instead of failing for ever.
        close_old_connections()
        raise
