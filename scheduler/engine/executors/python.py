"""The `python` executor: handlers in this process, async on the engine's loop, plain functions in threads."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import asyncio

from scheduler.engine.executors.base import AttemptContext, ExecutionResult

Handler = Callable[[Any, Any], Any]
"""`async def handler(ctx, payload)` or `def handler(ctx, payload)`; returns JSON, or an ExecutionResult."""

THREADS_MAX: Final = 256


class HandlerError(ValueError):
    """A pool names a handler that cannot be used; the message is a sentence for the operator."""


class PythonExecutor:
    """Runs one handler."""

    def __init__(self, handler: Handler, *, slots: int) -> None:
        self._handler = handler
        self._is_async = inspect.iscoroutinefunction(handler)
        self._threads = None if self._is_async else ThreadPoolExecutor(min(THREADS_MAX, max(1, slots)), "handler")

    async def run(self, ctx: AttemptContext, payload: object) -> ExecutionResult:
        """Call the handler. What it raises ends the attempt; anything but our own exceptions is retryable."""
        if self._threads is None:
            value = await self._handler(ctx, payload)
        else:
            loop = asyncio.get_running_loop()
            value = await loop.run_in_executor(self._threads, partial(self._handler, ctx, payload))
        return value if isinstance(value, ExecutionResult) else ExecutionResult(value)

    async def aclose(self) -> None:
        """Let no further plain function start; those that run cannot be stopped, only disregarded."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def load_handler(config: Mapping[str, object]) -> Handler:
    """The handler that a pool's configuration names as `{"handler": "module:function"}`. Raises HandlerError."""
    name = config.get("handler")
    if not isinstance(name, str) or name.count(":") != 1:
        raise HandlerError('A python pool needs {"handler": "module:function"} in its configuration.')
    module_name, function_name = name.split(":")
    try:
        handler = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise HandlerError(f"The handler {name!r} cannot be imported: {error}.") from error
    if not callable(handler):
        raise HandlerError(f"The handler {name!r} is not a function.")
    found: Handler = handler
    return found
