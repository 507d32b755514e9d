"""Makes the caller's executors into handlers of the engine: the same calls, the SDK's words on both sides.

It must never decide what becomes of a task: what an executor raises goes on as what it is.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from scheduler.engine.executors import base
from scheduler.engine.executors.python import Handler
from scheduler.sdk.context import TaskContext
from scheduler.sdk.declarations import Codec, Executor
from scheduler.sdk.embedded.attempt import OwnAttempt
from scheduler.sdk.errors import Permanent, Retryable, WriteRefused


def handler_of(
    executor: Executor, codec: Codec, loop: asyncio.AbstractEventLoop, started: Callable[[Any], None]
) -> Handler:
    """The handler that calls `executor`: an async one on the engine's loop, which is the caller's; else in a thread.

    `started` is called, on any thread, with each attempt that begins.
    """
    call: Callable[..., Any] = executor
    if inspect.iscoroutinefunction(executor) or inspect.iscoroutinefunction(getattr(executor, "__call__", None)):  # noqa: B004 - the method's kind is asked for, not whether it is there

        async def on_the_loop(attempt: Any, payload: Any) -> Any:
            started(attempt)
            try:
                return codec.encode(await call(TaskContext(OwnAttempt(attempt)), codec.decode(payload)))
            except (Retryable, Permanent, WriteRefused) as error:
                raise _in_engine_words(error) from error

        return on_the_loop

    def in_a_thread(attempt: Any, payload: Any) -> Any:
        started(attempt)
        try:
            value = call(TaskContext(OwnAttempt(attempt)), codec.decode(payload))
            if inspect.iscoroutine(value):
                # A function that returns a coroutine (a lambda, a partial of something) is an async one all the same.
                value = asyncio.run_coroutine_threadsafe(value, loop).result()
            return codec.encode(value)
        except (Retryable, Permanent, WriteRefused) as error:
            raise _in_engine_words(error) from error

    return in_a_thread


def _in_engine_words(error: Retryable | Permanent | WriteRefused) -> base.AttemptFailed:
    if isinstance(error, WriteRefused):
        return base.Permanent(str(error)) if error.permanent else base.Retryable(str(error))
    message = error.message or type(error).__name__
    if isinstance(error, Retryable):
        return base.Retryable(message, error.retry_after)
    return base.Permanent(message)
