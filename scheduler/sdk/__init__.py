"""The SDK: an embedded scheduler with the surface of cronoq, made durable and multi-tenant, and clients of a server.

    from scheduler import sdk as cronoq

    async def call_model(ctx: cronoq.TaskContext, prompt: str) -> str: ...

    async with cronoq.Scheduler([cronoq.Pool("llm", call_model, max=8)]) as sched:
        answer = await (await sched.submit("Say hello.", pool="llm", priority="high"))

Importing it needs no Django and touches nothing; `Scheduler.start` does that, in the process that calls it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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
from scheduler.sdk.errors import (
    ApiError,
    CancelTask,
    EventsLagged,
    Permanent,
    Reject,
    Retryable,
    SchedulerError,
    SubmitError,
    TaskFailed,
    WorkerRefused,
    WriteRefused,
)
from scheduler.sdk.events import Event, EventStream
from scheduler.sdk.handle import TaskHandle
from scheduler.sdk.remote.answers import Accepted, Operation, Preview, Run, TaskInfo, Why
from scheduler.sdk.scheduler import Scheduler
from scheduler.sdk.snapshot import PoolSnapshot

if TYPE_CHECKING:
    from scheduler.sdk.remote.async_client import AsyncClient
    from scheduler.sdk.remote.client import Client
    from scheduler.sdk.worker import Worker

__all__ = [
    "Accepted",
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
    "Operation",
    "Permanent",
    "Pool",
    "PoolSnapshot",
    "Preview",
    "Priority",
    "Reject",
    "Resource",
    "RetryPolicy",
    "Retryable",
    "Run",
    "Scheduler",
    "SchedulerError",
    "SubmitError",
    "Task",
    "TaskContext",
    "TaskFailed",
    "TaskHandle",
    "TaskInfo",
    "Why",
    "Worker",
    "WorkerRefused",
    "WriteRefused",
]

_LATER: Final = {
    "AsyncClient": "scheduler.sdk.remote.async_client",
    "Client": "scheduler.sdk.remote.client",
    "Worker": "scheduler.sdk.worker",
}
"""What needs HTTP or a websocket is imported on its first use: an embedded scheduler needs neither."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
