"""Tasks over REST: submit, look, wait, ask why, cancel, replay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Final, TypeVar

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query
from pydantic import Field

from scheduler import conf
from scheduler.api.access import (
    OPERATE,
    READ,
    SUBMIT,
    caller_of,
    check_pools,
    tenant_for_submit,
)
from scheduler.api.answers import KEY_HEADER, In, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Name, Priority, Problem, Text
from scheduler.api.router import Router
from scheduler.api.task_schemas import (
    AcceptedOut,
    BatchIn,
    BatchOut,
    CancelOut,
    ReasonIn,
    ReplayOut,
    ResultOut,
    SubmitIn,
    TaskDetailOut,
    TaskOut,
    TaskPageOut,
    present_detail,
    present_task,
)
from scheduler.api.threads import at_once, in_pool, in_thread
from scheduler.api.why_schemas import WhyOut, present_why
from scheduler.engine.doorbell import ring
from scheduler.engine.group_commit import GROUP_COMMIT
from scheduler.engine.wait_hub import wait_hub
from scheduler.errors import Conflict, FieldError, Refused
from scheduler.live.foresight import FORESIGHT
from scheduler.policy.admission import Submission
from scheduler.policy.calibration import Band
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.trace import TRACE_TAG, traced
from scheduler.policy.types import PriorityClass, TaskId, TenantId
from scheduler.reads.tasks import ID_MAX, PAGE_MAX, TaskDetail, TaskQuery, list_tasks, task_detail
from scheduler.reads.why import why
from scheduler.services.cancel import cancel
from scheduler.services.replay import replay
from scheduler.services.submit import Accepted, submit_batch

router = Router(tags=["tasks"])

Id = Annotated[int, Field(ge=1, le=ID_MAX)]
WAIT_MAX_S: Final = conf.current().wait_timeout_max_s
T = TypeVar("T")


class TaskFilterIn(In):
    """Which tasks; repeat a parameter to allow several values."""

    pool: list[Name] | None = None
    state: list[TaskState] | None = None
    priority: list[Priority] | None = None
    kind: list[Name] | None = None
    key: Text | None = None
    tenant: Text | None = None
    filter: Text | None = None
    cursor: Text | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


@router.post(
    "/tasks",
    auth=SUBMIT,
    operation_id="submit_task",
    response={202: AcceptedOut, 200: AcceptedOut, PROBLEMS: Problem},
)
async def submit_task(request: HttpRequest, body: SubmitIn) -> HttpResponse:
    """Take in one task. 200 instead of 202 when its key was used before for the same content."""
    caller = caller_of(request)
    check_pools(caller, {body.pool})
    submission = _traced(request, body.submission())
    if caller.tenant_id is None or KEY_HEADER in request.headers:
        return await in_thread(lambda: _submit_once(request, body, submission))
    accepted = await asyncio.wrap_future(GROUP_COMMIT.join(tenant_for_submit(caller, body.tenant), submission))
    ring()
    if FORESIGHT.is_stale():
        await in_thread(FORESIGHT.look)
    return respond(*_accepted(caller.tenant_id, submission, accepted))


def _submit_once(request: HttpRequest, body: SubmitIn, submission: Submission) -> HttpResponse:
    """The way of a submission that has to ask the database for more than to be stored."""
    tenant = tenant_for_submit(caller_of(request), body.tenant)
    if FORESIGHT.is_stale():
        FORESIGHT.look()
    return once_per_key(request, lambda: _accepted(tenant, submission, GROUP_COMMIT.submit(tenant, submission)))


def _traced(request: HttpRequest, submission: Submission) -> Submission:
    """The task as a part of the trace that its submitter is in, if it says so."""
    header = request.headers.get(TRACE_TAG)
    return submission if header is None else replace(submission, tags=traced(submission.tags, header))


def _accepted(tenant: TenantId, submission: Submission, accepted: Accepted) -> tuple[int, AcceptedOut]:
    return 200 if accepted.duplicate else 202, AcceptedOut.of(accepted, _foreseen(tenant, submission, accepted))


def _foreseen(tenant: TenantId, submission: Submission, accepted: Accepted) -> Band | None:
    if accepted.duplicate or accepted.state is not TaskState.READY:
        return None
    return FORESIGHT.of_new(submission.pool, submission.priority, tenant, tuple(sorted(submission.resources)))


@router.post("/tasks/batch", auth=SUBMIT, operation_id="submit_batch", response={202: BatchOut, PROBLEMS: Problem})
@in_pool
def submit_tasks(request: HttpRequest, body: BatchIn) -> HttpResponse:
    """Take in up to 1,000 tasks, all or none."""
    caller = caller_of(request)
    tenant = tenant_for_submit(caller, body.tenant)
    check_pools(caller, {task.pool for task in body.tasks})
    submissions = [_traced(request, submission) for submission in body.submissions()]

    def act() -> tuple[int, BatchOut]:
        accepted = submit_batch(tenant, submissions)
        bands = [_foreseen(tenant, s, a) for s, a in zip(submissions, accepted, strict=True)]
        return 202, BatchOut.of(accepted, bands, body.group)

    if FORESIGHT.is_stale():
        FORESIGHT.look()

    return once_per_key(request, act)


@router.get("/tasks", auth=READ, operation_id="list_tasks", response={200: TaskPageOut, PROBLEMS: Problem})
@in_pool
def get_tasks(request: HttpRequest, wanted: Query[TaskFilterIn]) -> HttpResponse:
    """Tasks, newest first. `filter` is written as in the console, and is joined with no other parameter.

    A page of it may have fewer tasks than `limit`, or none, and still a cursor: go on until there is none.
    """
    refuse_unknown(request, set(TaskFilterIn.model_fields))
    query = TaskQuery(
        pools=_tuple(wanted.pool),
        states=_tuple(wanted.state),
        priorities=_tuple([PriorityClass[p.upper()] for p in wanted.priority] if wanted.priority else None),
        kinds=_tuple(wanted.kind),
        key=wanted.key,
        tenant=wanted.tenant,
        filter=wanted.filter,
    )
    page = list_tasks(query, caller_of(request).tenant_id, cursor=wanted.cursor, rows_max=wanted.limit)
    tasks = [TaskOut(**present_task(row)) for row in page.tasks]
    return respond(200, TaskPageOut(tasks=tasks, next_cursor=page.next_cursor))


@router.get("/tasks/{task_id}", auth=READ, operation_id="get_task", response={200: TaskDetailOut, PROBLEMS: Problem})
@in_pool
def get_task(request: HttpRequest, task_id: Path[Id]) -> HttpResponse:
    """One task with its attempts, and its result once it has succeeded."""
    return respond(200, present_detail(task_detail(TaskId(task_id), caller_of(request).tenant_id)))


@router.get(
    "/tasks/{task_id}/result", auth=READ, operation_id="get_result", response={200: ResultOut, PROBLEMS: Problem}
)
@in_pool
def get_result(request: HttpRequest, task_id: Path[Id]) -> HttpResponse:
    """What a succeeded task returned; 409 with the state of one that has not."""
    found = task_detail(TaskId(task_id), caller_of(request).tenant_id)
    state = found.task.state
    if found.result is None:
        raise Conflict(f"Task {task_id} has no result: it is {state}.", code="no_result")
    return respond(200, ResultOut(id=task_id, state=state.value, result=orjson.Fragment(found.result)))


@router.get(
    "/tasks/{task_id}/wait", auth=READ, operation_id="wait_task", response={200: TaskDetailOut, PROBLEMS: Problem}
)
async def wait_task(
    request: HttpRequest, task_id: Path[Id], timeout_s: Annotated[float, Field(ge=0, le=WAIT_MAX_S)] = 30.0
) -> HttpResponse:
    """The task as soon as it has ended, or as it is after `timeout_s` seconds."""
    tenant = caller_of(request).tenant_id

    def look() -> TaskDetail:
        return task_detail(TaskId(task_id), tenant)

    found = await in_thread(look)
    if found.task.state not in TERMINAL and timeout_s > 0:
        await wait_hub().wait(found.task.id, timeout_s=timeout_s)
        found = await in_thread(look)
    return respond(200, present_detail(found))


@router.get("/tasks/{task_id}/why", auth=READ, operation_id="why_task", response={200: WhyOut, PROBLEMS: Problem})
@in_pool
def get_why(request: HttpRequest, task_id: Path[Id]) -> HttpResponse:
    """Why the task is not running, in words, with its place in the order."""
    return respond(200, present_why(why(TaskId(task_id), caller_of(request).tenant_id)))


@router.post(
    "/tasks/{task_id}/cancel", auth=SUBMIT, operation_id="cancel_task", response={200: CancelOut, PROBLEMS: Problem}
)
@at_once
def cancel_task(request: HttpRequest, task_id: Path[Id], body: ReasonIn | None = None) -> HttpResponse:
    """Cancel a waiting task at once, tell a running one to stop; 409 when it has ended."""
    caller = caller_of(request)
    reason = body.reason if body is not None else ""

    def act() -> tuple[int, CancelOut]:
        done = cancel(TaskId(task_id), caller.tenant_id, actor=caller.actor, reason=reason)
        return 200, CancelOut(id=task_id, state=done.state.value, requested=done.requested)

    return once_per_key(request, act)


@router.post(
    "/tasks/{task_id}/replay", auth=OPERATE, operation_id="replay_task", response={200: ReplayOut, PROBLEMS: Problem}
)
@in_pool
def replay_task(request: HttpRequest, task_id: Path[Id], body: ReasonIn | None = None) -> HttpResponse:
    """Run a failed, dead-lettered, shed or missed task afresh, under the same id."""
    caller = caller_of(request)
    reason = body.reason if body is not None else ""

    def act() -> tuple[int, ReplayOut]:
        state = replay(TaskId(task_id), caller.tenant_id, actor=caller.actor, reason=reason)
        return 200, ReplayOut(id=task_id, state=state.value)

    return once_per_key(request, act)


def refuse_unknown(request: HttpRequest, known: set[str]) -> None:
    """Raise Refused for a query parameter that means nothing here."""
    for name in request.GET:
        if name not in known:
            detail = f"There is no parameter {name!r}; there are {', '.join(sorted(known))}."
            raise Refused(detail, code="invalid", errors=(FieldError((name,), detail),))


def _tuple(values: list[T] | None) -> tuple[T, ...] | None:
    return tuple(values) if values else None
