"""The SDK: an embedded scheduler with the surface of cronoq, made durable and multi-tenant, and clients of a server.

    from scheduler import sdk as cronoq

    async def call_model(ctx: cronoq.TaskContext, prompt: str) -> str: ...

    async with cronoq.Scheduler([cronoq.Pool("llm", call_model, max=8)]) as sched:
        answer = await (await sched.submit("Say hello.", pool="llm", priority="high"))

Importing it needs no Django and touches nothing; `Scheduler.start` does that, in the process that calls it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scheduler.sdk.context import TaskContext
from scheduler.sdk.declarations import (
    AutoscaleConfig,
    Codec,
    Dep,
    JsonCodec,
    Pool,
    Priority,
    Resource,
    RetryPolicy,
    Task,
)
from scheduler.sdk.errors import ApiError, EventsLagged, Permanent, Retryable, SchedulerError, SubmitError, TaskFailed
from scheduler.sdk.events import Event, EventStream
from scheduler.sdk.handle import TaskHandle
from scheduler.sdk.remote.client import AsyncClient, Client
from scheduler.sdk.scheduler import Scheduler
from scheduler.sdk.snapshot import PoolSnapshot

if TYPE_CHECKING:
    from scheduler.sdk.worker import CancelTask, Reject, Worker

__all__ = [
    "ApiError",
    "AsyncClient",
    "AutoscaleConfig",
    "CancelTask",
    "Client",
    "Codec",
    "Dep",
    "Event",
    "EventStream",
    "EventsLagged",
    "JsonCodec",
    "Permanent",
    "Pool",
    "PoolSnapshot",
    "Priority",
    "Reject",
    "Resource",
    "RetryPolicy",
    "Retryable",
    "Scheduler",
    "SchedulerError",
    "SubmitError",
    "Task",
    "TaskContext",
    "TaskFailed",
    "TaskHandle",
    "Worker",
]

_OF_WORKERS = frozenset({"CancelTask", "Reject", "Worker"})


def __getattr__(name: str) -> Any:
    """The remote worker's names on first use: its module is a program of its own as well."""
    if name in _OF_WORKERS:
        return getattr(import_module("scheduler.sdk.worker"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
