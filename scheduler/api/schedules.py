"""Schedules over REST: a tenant's token works on its own; a token of every tenant says whose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from scheduler.api.access import OPERATE, READ, SUBMIT, caller_of, check_pools, tenant_for_submit
from scheduler.api.answers import In, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem, Text
from scheduler.api.router import Router
from scheduler.api.schedule_schemas import (
    ScheduleDetailOut,
    ScheduleEditIn,
    ScheduleIn,
    ScheduleOut,
    SchedulePageOut,
    present_detail,
    present_schedule,
)
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool
from scheduler.policy.types import TenantId
from scheduler.reads.schedules import OCCURRENCES_MAX, RUNS_MAX, ScheduleRow, list_schedules, outlook
from scheduler.reads.tasks import ID_MAX, PAGE_MAX
from scheduler.services.changes import Author
from scheduler.services.schedules import (
    Declared,
    add_schedule,
    described,
    edit_schedule,
    find_schedule,
    pause_schedule,
    remove_schedule,
    resume_schedule,
)

router = Router(tags=["schedules"])


class WhoseIn(In):
    """Whose schedule; needed when several tenants have one of that name."""

    tenant: Text | None = None


class DetailIn(WhoseIn):
    """How much to show."""

    runs: Annotated[int, Field(ge=0, le=RUNS_MAX)] = 5
    occurrences: Annotated[int, Field(ge=0, le=OCCURRENCES_MAX)] = 20


class PageIn(WhoseIn):
    """Which page."""

    cursor: Annotated[int, Field(ge=0, le=ID_MAX)] = 0
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


def _scope(request: HttpRequest, named: str | None) -> TenantId | None:
    """The tenant whose schedules are meant; None: of anyone. Raises NotFound for another tenant's."""
    caller = caller_of(request)
    return None if caller.tenant_id is None and named is None else tenant_for_submit(caller, named)


def _found(request: HttpRequest, name: str, named: str | None) -> ScheduleRow:
    return find_schedule(_scope(request, named), name)


def _author(request: HttpRequest, reason: str) -> Author:
    return Author(caller_of(request).actor, "api", reason)


@router.get("/schedules", auth=READ, operation_id="list_schedules", response={200: SchedulePageOut, PROBLEMS: Problem})
@in_pool
def get_schedules(request: HttpRequest, wanted: Query[PageIn]) -> HttpResponse:
    """Schedules, oldest first."""
    rows = list_schedules(_scope(request, wanted.tenant), after=wanted.cursor, rows_max=wanted.limit + 1)
    page = rows[: wanted.limit]
    cursor = page[-1].id if len(rows) > wanted.limit else None
    return respond(
        200, SchedulePageOut(schedules=[ScheduleOut(**present_schedule(r)) for r in page], next_cursor=cursor)
    )


@router.post("/schedules", auth=SUBMIT, operation_id="add_schedule", response={201: ScheduleOut, PROBLEMS: Problem})
@in_pool
def post_schedule(request: HttpRequest, body: ScheduleIn) -> HttpResponse:
    """Declare a schedule. Its first occurrence is the next one from now."""
    caller = caller_of(request)
    tenant = tenant_for_submit(caller, body.tenant)
    check_pools(caller, {body.task.pool})
    task = described(body.task.submission())
    declared = Declared(body.cron, body.time_zone, task, body.overlap, body.catch_up)

    def act() -> tuple[int, ScheduleOut]:
        row = add_schedule(tenant, body.name, declared, _author(request, body.reason))
        return 201, ScheduleOut(**present_schedule(row))

    return once_per_key(request, act, rings=False)


@router.get(
    "/schedules/{name}", auth=READ, operation_id="get_schedule", response={200: ScheduleDetailOut, PROBLEMS: Problem}
)
@in_pool
def get_schedule(request: HttpRequest, name: str, wanted: Query[DetailIn]) -> HttpResponse:
    """A schedule with its next runs and what became of the last ones."""
    row = _found(request, name, wanted.tenant)
    return respond(200, present_detail(row, outlook(row, runs_max=wanted.runs, occurrences_max=wanted.occurrences)))


@router.patch(
    "/schedules/{name}", auth=SUBMIT, operation_id="edit_schedule", response={200: ScheduleOut, PROBLEMS: Problem}
)
@in_pool
def patch_schedule(request: HttpRequest, name: str, body: ScheduleEditIn, wanted: Query[WhoseIn]) -> HttpResponse:
    """Change a schedule. 409 with both versions when it was changed meanwhile."""
    row = _found(request, name, wanted.tenant)
    fields = ("cron", "time_zone", "overlap", "catch_up")
    changes: dict[str, Any] = {f: getattr(body, f) for f in fields if getattr(body, f) is not None}
    if body.task is not None:
        check_pools(caller_of(request), {body.task.pool})
        changes["task"] = described(body.task.submission())
    after = edit_schedule(row.tenant, name, body.version, changes, _author(request, body.reason))
    return respond(200, ScheduleOut(**present_schedule(after)))


@router.post(
    "/schedules/{name}/pause",
    auth=OPERATE,
    operation_id="pause_schedule",
    response={200: ScheduleOut, PROBLEMS: Problem},
)
@in_pool
def post_pause(request: HttpRequest, name: str, wanted: Query[WhoseIn], body: ReasonIn | None = None) -> HttpResponse:
    """Submit nothing until it is resumed; its times go by."""
    return _switch(request, name, wanted, body, pause_schedule)


@router.post(
    "/schedules/{name}/resume",
    auth=OPERATE,
    operation_id="resume_schedule",
    response={200: ScheduleOut, PROBLEMS: Problem},
)
@in_pool
def post_resume(request: HttpRequest, name: str, wanted: Query[WhoseIn], body: ReasonIn | None = None) -> HttpResponse:
    """Go on; what came meanwhile is made up for as `catch_up` says."""
    return _switch(request, name, wanted, body, resume_schedule)


def _switch(
    request: HttpRequest,
    name: str,
    wanted: WhoseIn,
    body: ReasonIn | None,
    switch: Callable[[TenantId, str, Author], ScheduleRow],
) -> HttpResponse:
    """Pause or resume, once per key."""
    row = _found(request, name, wanted.tenant)
    author = _author(request, body.reason if body is not None else "")

    def act() -> tuple[int, ScheduleOut]:
        return 200, ScheduleOut(**present_schedule(switch(row.tenant, name, author)))

    return once_per_key(request, act, rings=False)


@router.delete(
    "/schedules/{name}", auth=SUBMIT, operation_id="remove_schedule", response={204: None, PROBLEMS: Problem}
)
@in_pool
def delete_schedule(request: HttpRequest, name: str, wanted: Query[WhoseIn]) -> HttpResponse:
    """Remove a schedule. Tasks that it submitted stay."""
    row = _found(request, name, wanted.tenant)
    remove_schedule(row.tenant, name, _author(request, ""))
    return HttpResponse(status=204)
