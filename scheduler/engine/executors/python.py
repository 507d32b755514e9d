"""The `python` executor: handlers in this process, async on the engine's loop, plain functions in threads."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from scheduler.engine.executors.base import AttemptContext, ExecutionResult
from scheduler.engine.executors.threads import Threads

Handler = Callable[[Any, Any], Any]
"""`async def handler(ctx, payload)` or `def handler(ctx, payload)`; returns JSON, or an ExecutionResult."""


class HandlerError(ValueError):
    """A pool names a handler that cannot be used; the message is a sentence for the operator."""


class PythonExecutor:
    """Runs one handler."""

    def __init__(self, handler: Handler, *, name: str = "handler") -> None:
        self._handler = handler
        self._threads = None if _is_async(handler) else Threads(name)

    async def run(self, ctx: AttemptContext, payload: object) -> ExecutionResult:
        """Call the handler. What it raises ends the attempt; anything but our own exceptions is retryable."""
        if self._threads is None:
            value = await self._handler(ctx, payload)
        else:
            value = await self._threads.call(partial(self._handler, ctx, payload))
        return value if isinstance(value, ExecutionResult) else ExecutionResult(value)

    async def aclose(self) -> None:
        """Plain functions that still run cannot be stopped, only disregarded."""
        if self._threads is not None:
            self._threads.close()


def _is_async(handler: Handler) -> bool:
    """Whether it is to be awaited: an async function, or an object whose call is one."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


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
