"""Threads of the engine with a database connection of their own, on which a loop runs its services one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from django.db import close_old_connections, connection

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE: Final[Mapping[str, int]] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}
"""libpq's options for a server that does not answer at all: seconds, and milliseconds for the last."""


class DbThread:
    """Services are synchronous; a loop awaits them here. A broken connection is replaced before the next call."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name, initializer=own_connection)

    async def call(self, service: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a service to its end, even if the caller is cancelled meanwhile, and return its result."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._pool, lambda: _guarded(service, *args, **kwargs)))

    def close(self) -> None:
        """Let the last call end, then give the connection back."""
        self._pool.submit(close_connection)
        self._pool.shutdown(wait=True)


def own_connection() -> None:
    """Let this thread connect by itself instead of out of the process's pool.

    The thread keeps its connection anyway, and the pool would make it wait: up to ten seconds while the server is
    down, and after a long outage as long again, because it tries to reconnect at ever longer intervals.
    """
    settings = connection.settings_dict
    options = {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}
    connection.settings_dict = {**settings, "OPTIONS": {**PATIENCE, **options}}


def close_connection() -> None:
    """Close this thread's connection. `connection.close` itself would be another thread's, where it is looked up."""
    connection.close()


def _guarded(service: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        return service(*args, **kwargs)
    except Exception:
        # The connection may be the reason; Django marks it, and drops it here instead of failing for ever.
        close_old_connections()
        raise
