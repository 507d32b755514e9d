"""Runs what asks the database for async views: in bounded pools, each call giving its connection back.

What takes in or takes back one thing, with a few statements and waiting for nobody, has threads of its own: it must not
stand in line behind batches and long lists. It never decides what is done.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from django.db import connection
from django.http import HttpRequest

from scheduler.services.changes import coming_from

P = ParamSpec("P")
T = TypeVar("T")

THREADS_MAX: Final = 8
SHORT_MAX: Final = 2
_POOL: Final = ThreadPoolExecutor(max_workers=THREADS_MAX, thread_name_prefix="api")
_SHORT: Final = ThreadPoolExecutor(max_workers=SHORT_MAX, thread_name_prefix="api-short")


def in_pool(view: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Make an async view of one that asks the database: it runs in the pool, from its first line to its last."""
    return _made_async(view, _POOL)


def at_once(view: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The same for a view that takes in or takes back one thing and waits for no plan, in a line of its like."""
    return _made_async(view, _SHORT)


def _made_async(view: Callable[P, T], pool: ThreadPoolExecutor) -> Callable[P, Awaitable[T]]:
    @wraps(view)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        def call() -> T:
            with coming_from(*_origin(args[0])):
                return view(*args, **kwargs)

        return await in_thread(call, pool)

    # Ninja reads the parameters' types here, and would look their names up in this module.
    run.__signature__ = inspect.signature(view, eval_str=True)  # type: ignore[attr-defined]  # what `inspect` looks for
    return run


def _origin(request: object) -> tuple[str | None, str | None]:
    """The address of a client, and how it calls its request."""
    if not isinstance(request, HttpRequest):
        return None, None
    return request.META.get("REMOTE_ADDR"), request.headers.get("X-Request-ID")


async def in_thread(call: Callable[[], T], pool: ThreadPoolExecutor = _POOL) -> T:
    """Run a call that uses the database, without holding a thread or a connection before or after."""

    def run() -> T:
        try:
            return call()
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(pool, run)
