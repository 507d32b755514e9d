"""Operations on many tasks over REST: look at what one would do, start one, see how far it is, pause or abort it."""

from __future__ import annotations

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query
from pydantic import Field

from scheduler.api.access import OPERATE, READ, caller_of
from scheduler.api.answers import In, Out, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.operation_schemas import (
    ItemPageOut,
    OperationIn,
    OperationOut,
    OperationPageOut,
    PreviewOut,
    present_item,
    present_operation,
    present_preview,
)
from scheduler.api.router import Router
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool
from scheduler.policy.operations import Change, OperationKind, narrow
from scheduler.reads.operations import list_operations, load_operation, operation_items, preview_operation
from scheduler.reads.task_lists import read_filter
from scheduler.reads.tasks import ID_MAX, PAGE_MAX
from scheduler.services.changes import Author
from scheduler.services.operations import Wanted, change_operation, start_operation

router = Router(tags=["operations"])

Id = Annotated[int, Field(ge=1, le=ID_MAX)]


class PageIn(In):
    """Which page."""

    cursor: Annotated[int, Field(ge=0, le=ID_MAX)] | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


class ItemPageIn(PageIn):
    """Which tasks of an operation."""

    outcome: Literal["skipped"] | None = None


@router.post(
    "/operations/preview", auth=OPERATE, operation_id="preview_operation", response={200: PreviewOut, PROBLEMS: Problem}
)
@in_pool
def post_preview(request: HttpRequest, body: OperationIn) -> HttpResponse:
    """What the operation would be done to; nothing is done."""
    kind = OperationKind(body.kind)
    return respond(
        200, present_preview(preview_operation(kind, read_filter(body.filter), caller_of(request).tenant_id))
    )


@router.post(
    "/operations", auth=OPERATE, operation_id="start_operation", response={201: OperationOut, PROBLEMS: Problem}
)
@in_pool
def post_operation(request: HttpRequest, body: OperationIn) -> HttpResponse:
    """Do something to all tasks that match now: the set is frozen, and worked off at a rate, from ten seconds on.

    With `shown` (from the preview) more than that is refused with 409; with `as_of` what came later is left out.
    """
    caller = caller_of(request)

    def act() -> tuple[int, Out]:
        kind = OperationKind(body.kind)
        wanted = Wanted(
            kind,
            narrow(kind, read_filter(body.filter)),
            body.rate,
            as_of=None if body.as_of is None else body.as_of.timestamp(),
            shown=body.shown,
            typed="" if body.shown is None else str(body.shown),
        )
        made = start_operation(wanted, caller.tenant_id, Author(caller.actor, "api", body.reason))
        return 201, present_operation(load_operation(made, caller.tenant_id))

    return once_per_key(request, act)


@router.get(
    "/operations", auth=READ, operation_id="list_operations", response={200: OperationPageOut, PROBLEMS: Problem}
)
@in_pool
def get_operations(request: HttpRequest, wanted: Query[PageIn]) -> HttpResponse:
    """Operations, newest first; a tenant's token sees those that were made with its own tokens."""
    tenant = caller_of(request).tenant_id
    rows = list_operations(tenant, before=wanted.cursor, rows_max=wanted.limit + 1)
    page = rows[: wanted.limit]
    cursor = page[-1].id if len(rows) > wanted.limit else None
    shown = [present_operation(load_operation(row.id, tenant)) for row in page]
    return respond(200, OperationPageOut(operations=shown, next_cursor=cursor))


@router.get(
    "/operations/{operation_id}",
    auth=READ,
    operation_id="get_operation",
    response={200: OperationOut, PROBLEMS: Problem},
)
@in_pool
def get_operation(request: HttpRequest, operation_id: Path[Id]) -> HttpResponse:
    """How far an operation is."""
    return respond(200, present_operation(load_operation(operation_id, caller_of(request).tenant_id)))


@router.get(
    "/operations/{operation_id}/tasks",
    auth=READ,
    operation_id="list_operation_tasks",
    response={200: ItemPageOut, PROBLEMS: Problem},
)
@in_pool
def get_items(request: HttpRequest, operation_id: Path[Id], wanted: Query[ItemPageIn]) -> HttpResponse:
    """What became of each task of the frozen set."""
    rows = operation_items(
        operation_id,
        caller_of(request).tenant_id,
        skipped=wanted.outcome is not None,
        after=wanted.cursor or 0,
        rows_max=wanted.limit + 1,
    )
    page = rows[: wanted.limit]
    cursor = page[-1].place if len(rows) > wanted.limit else None
    return respond(200, ItemPageOut(tasks=[present_item(row) for row in page], next_cursor=cursor))


@router.post(
    "/operations/{operation_id}/{change}",
    auth=OPERATE,
    operation_id="change_operation",
    response={200: OperationOut, PROBLEMS: Problem},
)
@in_pool
def post_change(
    request: HttpRequest,
    operation_id: Path[Id],
    change: Path[Literal["pause", "resume", "abort"]],
    body: ReasonIn | None = None,
) -> HttpResponse:
    """Pause, resume or abort an operation; 409 with its state when that is not possible. What is done stays done."""
    caller = caller_of(request)

    def act() -> tuple[int, Out]:
        author = Author(caller.actor, "api", body.reason if body is not None else "")
        change_operation(operation_id, Change(change), caller.tenant_id, author)
        return 200, present_operation(load_operation(operation_id, caller.tenant_id))

    return once_per_key(request, act)
