"""A backend for Django's tasks: `@task` functions become tasks of a pool, enqueued in the caller's own transaction.

    TASKS = {"default": {"BACKEND": "scheduler.tasks_backend.CronoqBackend", "QUEUES": [],
                         "OPTIONS": {"tenant": "acme", "pools": {"default": "django"}}}}

A queue is a pool: the one that `pools` names for it, else the one of its name. Such a pool has the executor `python`
and the handler `scheduler.tasks_backend:run_task`; its engines run with the project's own settings. Decides how one
vocabulary is said in the other. It must never call a function that was not declared with `@task`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import django
import orjson
from django.core import checks
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from scheduler.engine.doorbell import ring
from scheduler.engine.executors.base import AttemptContext, Permanent
from scheduler.errors import NotFound
from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.payload import fault_in_json
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import Outcome, PriorityClass, TaskId
from scheduler.reads.faults import Fault, faults_of
from scheduler.reads.tasks import AttemptRow, TaskDetail, task_detail, task_payload
from scheduler.services.faults import keep_fault
from scheduler.services.submit import submit
from scheduler.services.tenants import load_tenant

if TYPE_CHECKING or django.VERSION < (6, 0):
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json
else:
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

logger = logging.getLogger(__name__)

OPTIONS: Final = frozenset({"tenant", "pools", "max_attempts"})
KIND_CHARS_MAX: Final = 64
ID_CHARS_MAX: Final = 19
MARK: Final = "django_task"
"""What in a payload says that it is one of ours: the path of the function."""

_WITHOUT_A_FAULT: Final = {Outcome.TIMED_OUT: "builtins.TimeoutError"}


class CronoqBackend(BaseTaskBackend):
    """Enqueues into a pool of this database."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(self, task: Task[Any, Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        """Store the task, together with whatever else the caller's transaction does, or not at all.

        Raises InvalidTaskError, TypeError or ValueError for arguments that are not JSON, and what `submit` refuses.
        """
        self.validate_task(task)
        tenant = load_tenant(self._tenant)
        with transaction.atomic():
            accepted = submit(tenant.id, self._submission(task, args, kwargs))
            result = self.get_result(str(accepted.id))
        transaction.on_commit(ring)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[Any]:
        """How the task stands. Raises TaskResultDoesNotExist, also for tasks that did not come from here."""
        if not (result_id.isascii() and result_id.isdigit() and len(result_id) <= ID_CHARS_MAX):
            raise TaskResultDoesNotExist(result_id)
        task = TaskId(int(result_id))
        try:
            tenant = load_tenant(self._tenant).id
            detail = task_detail(task, tenant)
            told = orjson.loads(task_payload(task, tenant))
        except NotFound as error:
            raise TaskResultDoesNotExist(result_id) from error
        if not isinstance(told, dict) or MARK not in told:
            raise TaskResultDoesNotExist(result_id)
        return _result(detail, told, faults_of(task) if detail.attempts else {})

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Whether the settings can work, as far as that can be said without a database."""
        yield from super().check(**kwargs)
        where = f"TASKS[{self.alias!r}]['OPTIONS']"
        unknown = sorted(set(self.options) - OPTIONS)
        if unknown:
            yield checks.Error(
                f"{where} has no {unknown[0]!r}; it knows {', '.join(sorted(OPTIONS))}.", id="cronoq.E001"
            )
        if not isinstance(self.options.get("tenant"), str):
            yield checks.Error(f"{where} must name a tenant: the slug that tasks belong to.", id="cronoq.E002")

    @property
    def _tenant(self) -> str:
        return str(self.options.get("tenant", ""))

    def _submission(self, task: Task[Any, Any], args: Any, kwargs: Any) -> Submission:
        told = {
            MARK: task.module_path,
            "args": normalize_json(args),
            "kwargs": normalize_json(kwargs),
            "backend": self.alias,
            "queue": task.queue_name,
            "priority": task.priority,
            "run_after": None if task.run_after is None else _aware(task.run_after).isoformat(),
        }
        fault = fault_in_json(told)
        if fault is not None:
            raise ValueError(f"{'.'.join(map(str, fault.loc))}: {fault.msg}")
        attempts = self.options.get("max_attempts")
        return Submission(
            payload=orjson.dumps(told).decode(),
            pool=self.options.get("pools", {}).get(task.queue_name, task.queue_name),
            kind=task.module_path[-KIND_CHARS_MAX:],
            priority=priority_class(task.priority),
            start_at=None if task.run_after is None else _aware(task.run_after).timestamp(),
            retry=None if attempts is None else RetrySettings(max_attempts=attempts),
        )


def priority_class(priority: int) -> PriorityClass:
    """Below zero is low, zero normal, up to 50 high, above that critical."""
    if priority < 0:
        return PriorityClass.LOW
    if priority == 0:
        return PriorityClass.NORMAL
    return PriorityClass.HIGH if priority <= 50 else PriorityClass.CRITICAL  # noqa: PLR2004 - the docstring's


# Running


def run_task(ctx: AttemptContext, payload: Any) -> Any:
    """The handler of pools for Django's tasks: call the function that the payload names, sync or async, in a thread."""
    backend, result = _begun(ctx, payload)
    task = result.task
    task_started.send(type(backend), task_result=result)
    before = (TaskContext(task_result=result),) if task.takes_context else ()
    try:
        value = normalize_json(task.call(*before, *result.args, **result.kwargs))
    except BaseException as error:
        _finished(result, TaskResultStatus.FAILED)
        result.errors.append(_error(Fault(_path(type(error)), str(error))))
        try:
            keep_fault(ctx.lease_id, ctx.task_id, error)
            if isinstance(error, Permanent) or _is_last(ctx):
                task_finished.send(type(backend), task_result=result)
        except DatabaseError:
            logger.exception("task %s: what it raised cannot be kept", ctx.task_id)
        raise
    _finished(result, TaskResultStatus.SUCCESSFUL)
    object.__setattr__(result, "_return_value", value)
    task_finished.send(type(backend), task_result=result)
    return value


def _begun(ctx: AttemptContext, payload: Any) -> tuple[BaseTaskBackend, TaskResult[Any]]:
    """The backend and the task's result as it begins. Raises Permanent for a payload that names no `@task`."""
    if not isinstance(payload, dict) or MARK not in payload:
        raise Permanent("This pool runs tasks that were enqueued through Django's tasks.")
    try:
        task = _task(payload)
        backend = task.get_backend()
        return backend, backend.get_result(str(ctx.task_id))
    except (ImportError, LookupError, TypeError, ValueError, TaskResultDoesNotExist) as error:
        raise Permanent(f"{payload[MARK]} cannot be run: {type(error).__name__}: {error}") from error


def _is_last(ctx: AttemptContext) -> bool:
    return ctx.attempt >= task_detail(TaskId(ctx.task_id), None).task.max_attempts


def _finished(result: TaskResult[Any], status: TaskResultStatus) -> None:
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", timezone.now())


# What the two vocabularies call the same


def _task(told: dict[str, Any]) -> Task[Any, Any]:
    """The declared task that a payload means. Raises ImportError or TypeError when there is none."""
    found = import_string(told[MARK])
    if not isinstance(found, Task):
        raise TypeError("it is not declared with @task")
    run_after = told.get("run_after")
    return found.using(
        priority=told["priority"],
        queue_name=told["queue"],
        backend=told["backend"],
        run_after=None if run_after is None else datetime.fromisoformat(run_after),
    )


def _result(detail: TaskDetail, told: dict[str, Any], faults: dict[Any, Fault]) -> TaskResult[Any]:
    attempts = detail.attempts[::-1]
    tried = [a for a in attempts if a.outcome != Outcome.RELEASED]
    running = detail.running
    starts = [a.started_at for a in tried] + ([running.started_at] if running is not None else [])
    result: TaskResult[Any] = TaskResult(
        task=_task(told),
        id=str(detail.task.id),
        status=_status(detail.task.state),
        enqueued_at=_moment(detail.task.created_at),
        started_at=_moment(starts[0]) if starts else None,
        finished_at=_moment(detail.task.finished_at),
        last_attempted_at=_moment(starts[-1]) if starts else None,
        args=told["args"],
        kwargs=told["kwargs"],
        backend=told["backend"],
        errors=[_error(faults.get(a.lease) or _unheard(a)) for a in tried if a.outcome != Outcome.SUCCEEDED],
        worker_ids=[a.worker for a in tried] + ([running.worker] if running is not None else []),
    )
    if detail.result is not None:
        object.__setattr__(result, "_return_value", orjson.loads(detail.result))
    return result


def _status(state: TaskState) -> TaskResultStatus:
    if state is TaskState.SUCCEEDED:
        return TaskResultStatus.SUCCESSFUL
    if state is TaskState.RUNNING:
        return TaskResultStatus.RUNNING
    return TaskResultStatus.FAILED if state in TERMINAL else TaskResultStatus.READY


def _unheard(attempt: AttemptRow) -> Fault:
    """What is said of an attempt whose exception nobody heard: it took too long, or its process died."""
    said = attempt.message or f"the attempt ended as {attempt.outcome}"
    return Fault(_WITHOUT_A_FAULT.get(Outcome(attempt.outcome), "builtins.RuntimeError"), said)


def _error(fault: Fault) -> TaskError:
    return TaskError(exception_class_path=fault.exception, traceback=fault.traceback)


def _path(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _aware(moment: datetime) -> datetime:
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment
