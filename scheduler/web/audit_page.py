"""The audit: who changed what, when, why and through which door; by any of these, and as a file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, cast
from urllib.parse import urlencode

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.reads.audit import SOURCES, AuditFilter, AuditPage, all_events, find_event, list_events
from scheduler.web.access import VIEW_AUDIT, needs
from scheduler.web.audit_export import without_waiting, written
from scheduler.web.audit_story import door_of, entry_of, seen_by
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import missing, page

ROWS: Final = 50
NAMES: Final = ("actor", "action", "subject", "source", "since", "until")
_TEXT_CHARS_MAX: Final = 200
_NOTHING: Final = AuditPage((), None, None)


@require_safe
@needs(VIEW_AUDIT)
def audit(request: HttpRequest) -> HttpResponse:
    """A page of it, newest first. A filter that means nothing is answered 422, with its fault beside it."""
    fields, found, status = _fields(request), _NOTHING, 200
    loose: list[str] = []
    try:
        found = list_events(_wanted(request), cursor=request.GET.get("cursor") or None, rows_max=ROWS)
    except Refused as refusal:
        fields, loose = with_faults(fields, refusal.errors)
        status = 422
    return page(
        request,
        "ops/audit.html",
        title="Audit",
        nav="audit",
        status=status,
        fields=fields,
        faults=loose,
        entries=[entry_of(seen_by(request, row)) for row in found.events],
        asked=_query(request),
        filtered=any(field.value for field in fields),
        older=_at(request, found.older),
        newer=_at(request, found.newer),
        beyond=bool(request.GET.get("cursor")),
    )


@require_safe
@needs(VIEW_AUDIT)
def entry(request: HttpRequest, event_id: int) -> HttpResponse:
    """One entry, whole."""
    try:
        found = find_event(event_id)
    except NotFound as fault:
        return missing(request, fault.detail)
    told = entry_of(seen_by(request, found), whole=True)
    return page(request, "ops/audit_entry.html", title=f"Audit entry {found.id}", nav="audit", entry=told)


@require_safe
@needs(VIEW_AUDIT)
def export(request: HttpRequest) -> HttpResponse:
    """What the filter finds as a CSV file, of any length, written while it is read."""
    try:
        found = all_events(_wanted(request))
        pieces = written([seen_by(request, row) for row in rows] for rows in found)
    except Refused:
        return audit(request)
    streamed = without_waiting(pieces) if isinstance(request, ASGIRequest) else pieces
    response = StreamingHttpResponse(streamed, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    response["Cache-Control"] = "no-store, private"
    return cast("HttpResponse", response)  # what guards and middleware do with either is the same


def _wanted(request: HttpRequest) -> AuditFilter:
    """What is asked for. Raises Refused for times that are none."""
    given = {name: request.GET.get(name, "").strip()[:_TEXT_CHARS_MAX] or None for name in NAMES}
    wanted = AuditFilter(given["actor"], given["action"], given["subject"], given["source"])
    return replace(wanted, since=_time("since", given["since"]), until=_time("until", given["until"]))


def _time(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
        return given.replace(tzinfo=given.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        detail = "Write a time like 2026-11-30 or 2026-11-30T12:00, in UTC."
        raise Refused(detail, code="bad_filter", errors=(FieldError((name,), detail),)) from None


def _fields(request: HttpRequest) -> list[Field]:
    value = {name: request.GET.get(name, "").strip()[:_TEXT_CHARS_MAX] for name in NAMES}
    doors = [("", "any"), *((source, door_of(source)) for source in SOURCES)]
    return [
        Field("actor", "Who", value["actor"]),
        Field("action", "Action", value["action"], extra={"placeholder": "pool.pause"}),
        Field("subject", "What", value["subject"], extra={"placeholder": "pool:llm"}),
        Field("source", "Through", value["source"], kind="select", options=doors),
        Field("since", "From, UTC", value["since"], extra={"placeholder": "2026-11-30"}),
        Field("until", "Until, UTC", value["until"], extra={"placeholder": "2026-12-01"}),
    ]


def _query(request: HttpRequest) -> str:
    return urlencode({name: request.GET[name] for name in NAMES if request.GET.get(name)})


def _at(request: HttpRequest, cursor: str | None) -> str:
    """The address of a page beside this one, with the same filter; empty for none."""
    return "" if cursor is None else f"?{'&'.join(filter(None, (_query(request), urlencode({'cursor': cursor}))))}"
