"""The audit over REST."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from scheduler.api.access import ADMIN
from scheduler.api.answers import In, Out, moment, respond
from scheduler.api.fields import PROBLEMS, Moment, Problem, Text
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.reads.audit import PAGE_MAX, AuditFilter, AuditRow, list_events

router = Router(tags=["audit"])


class AuditQuery(In):
    """Which changes: by who, what, to what, through which door and when; all when nothing is named."""

    actor: Annotated[Text, Field(max_length=200)] | None = None
    action: Annotated[Text, Field(max_length=64)] | None = None
    subject: Annotated[Text, Field(max_length=200, description="Like pool:llm")] | None = None
    source: Literal["ui", "api", "admin", "system"] | None = None
    since: Moment | None = None
    until: Annotated[Moment, Field(description="Not part of the range")] | None = None
    cursor: Annotated[str, Field(max_length=20)] | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


class AuditEventOut(Out):
    """One change. `before` and `after` hold what changed."""

    id: int
    at: datetime
    actor: str
    source: str
    action: str
    subject: str
    reason: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    address: str | None
    request_id: str | None


class AuditOut(Out):
    """Changes, newest first. `next_cursor` asks for the next page; null at the end."""

    events: list[AuditEventOut]
    next_cursor: str | None


@router.get("/audit", auth=ADMIN, operation_id="list_audit", response={200: AuditOut, PROBLEMS: Problem})
@in_pool
def get_audit(request: HttpRequest, wanted: Query[AuditQuery]) -> HttpResponse:
    """Who changed what, newest first."""
    asked = AuditFilter(
        wanted.actor,
        wanted.action,
        wanted.subject,
        wanted.source,
        since=None if wanted.since is None else wanted.since.timestamp(),
        until=None if wanted.until is None else wanted.until.timestamp(),
    )
    found = list_events(asked, cursor=wanted.cursor, rows_max=wanted.limit)
    return respond(200, AuditOut(events=[_present(row) for row in found.events], next_cursor=found.older))


def _present(row: AuditRow) -> AuditEventOut:
    return AuditEventOut(
        id=row.id,
        at=moment(row.at),
        actor=row.actor,
        source=row.source,
        action=row.action,
        subject=row.subject,
        reason=row.reason,
        before=row.before,
        after=row.after,
        address=row.address,
        request_id=row.request_id,
    )
