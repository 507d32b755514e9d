"""Groups over REST: list, look, and cancel together."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from scheduler.api.access import READ, SUBMIT, caller_of
from scheduler.api.answers import In, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem, Text
from scheduler.api.graph_schemas import GroupOut, GroupPageOut, present_group, present_groups
from scheduler.api.router import Router
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool
from scheduler.policy.types import TenantId
from scheduler.reads.groups import group_detail, list_groups, tenant_of_group
from scheduler.reads.tasks import ID_MAX, PAGE_MAX
from scheduler.services.groups import cancel_group

router = Router(tags=["groups"])


class OwnerIn(In):
    """Whose group."""

    tenant: Text | None = None


class GroupPageIn(OwnerIn):
    """Which page."""

    cursor: Annotated[int, Field(ge=1, le=ID_MAX)] = ID_MAX
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


@router.get("/groups", auth=READ, operation_id="list_groups", response={200: GroupPageOut, PROBLEMS: Problem})
@in_pool
def get_groups(request: HttpRequest, wanted: Query[GroupPageIn]) -> HttpResponse:
    """Groups, newest first."""
    own = caller_of(request).tenant_id
    tenant = None if own is None and wanted.tenant is None else tenant_of_group(own, wanted.tenant)
    rows = list_groups(tenant, before=wanted.cursor, rows_max=wanted.limit + 1)
    page = rows[: wanted.limit]
    return respond(200, present_groups(page, next_cursor=page[-1].id if len(rows) > wanted.limit else None))


@router.get("/groups/{name}", auth=READ, operation_id="get_group", response={200: GroupOut, PROBLEMS: Problem})
@in_pool
def get_group(request: HttpRequest, name: str, owner: Annotated[OwnerIn, Query()]) -> HttpResponse:
    """A group with its members counted by state."""
    return respond(200, present_group(group_detail(name, _tenant(request, owner))))


@router.post(
    "/groups/{name}/cancel", auth=SUBMIT, operation_id="cancel_group", response={200: GroupOut, PROBLEMS: Problem}
)
@in_pool
def post_cancel(
    request: HttpRequest, name: str, owner: Annotated[OwnerIn, Query()], body: ReasonIn | None = None
) -> HttpResponse:
    """Cancel what is left of a group: who waits at once, who runs is told to stop. 409 when it was cancelled before."""
    tenant = _tenant(request, owner)
    reason = body.reason if body is not None else ""

    def act() -> tuple[int, GroupOut]:
        cancel_group(name, tenant, actor=caller_of(request).actor, reason=reason)
        return 200, present_group(group_detail(name, tenant))

    return once_per_key(request, act)


def _tenant(request: HttpRequest, owner: OwnerIn) -> TenantId:
    return tenant_of_group(caller_of(request).tenant_id, owner.tenant)
