"""Operations on many tasks: the list, one of them, and the page on which one is confirmed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.live import wording
from scheduler.policy.filters import format_filter
from scheduler.policy.operations import ITEMS_MAX, RATE_DEFAULT, RATE_MAX, TYPED_ABOVE, OperationKind
from scheduler.reads.operations import Preview, list_operations, load_operation, operation_items, preview_operation
from scheduler.reads.task_lists import read_filter
from scheduler.web import operation_story as story
from scheduler.web.access import OPERATE_TASK, VIEW_CONSOLE, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.filtering import place_of
from scheduler.web.operation_progress import again_url, moving
from scheduler.web.shell import missing, page
from scheduler.web.task_rows import lines_of
from scheduler.web.task_story import when

ROWS: Final = 50


@require_safe
@needs(VIEW_CONSOLE)
def operations(request: HttpRequest) -> HttpResponse:
    """All operations, newest first."""
    rows = list_operations(None, before=place_of(request, "older"), rows_max=ROWS + 1)
    now = load_operation(rows[0].id, None).now if rows else 0.0
    path = reverse("ops:operations")
    return page(
        request,
        "ops/operations.html",
        title="Operations",
        nav="operations",
        lines=[story.line_of(row, now=now) for row in rows[:ROWS]],
        older=f"{path}?older={rows[ROWS - 1].id}" if len(rows) > ROWS else "",
        newer=path if "older" in request.GET else "",
        newer_says="Newest",
    )


@require_safe
@needs(VIEW_CONSOLE)
def operation(request: HttpRequest, operation_id: int) -> HttpResponse:
    """One operation: how far it is, and what became of each task."""
    return operation_page(request, operation_id)


def operation_page(request: HttpRequest, operation_id: int, *, status: int = 200, fault: str = "") -> HttpResponse:
    """The page, as a visit or the answer to an action that changed nothing."""
    only_skipped = request.GET.get("show") == "skipped"
    after = place_of(request, "after") or 0
    try:
        found = load_operation(operation_id, None)
        items = operation_items(operation_id, None, skipped=only_skipped, after=after, rows_max=ROWS + 1)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    path = reverse("ops:operation", kwargs={"operation_id": operation_id})
    shown = "show=skipped&" if only_skipped else ""
    return page(
        request,
        "ops/operation.html",
        title=story.title_of(found.row),
        nav="operations",
        status=status,
        **moving(found),
        again_url=again_url(found),
        deeds=story.deeds_of(found.row.state),
        frozen=when(found.row.as_of),
        looked=when(found.now),
        items=story.item_lines(items[:ROWS]),
        only_skipped=only_skipped,
        path=path,
        older=f"{path}?{shown}after={items[ROWS - 1].place}" if len(items) > ROWS else "",
        older_says="More",
        newer=f"{path}?{shown.rstrip('&')}" if after else "",
        newer_says="First",
        may_operate=may(request, OPERATE_TASK),
        fault=fault,
    )


@require_safe
@needs(OPERATE_TASK)
def confirm(request: HttpRequest) -> HttpResponse:
    """What an operation would do, before anything is done."""
    kind = kind_of(request.GET.get("kind", ""))
    if kind is None:
        return missing(request, "There is no such operation: replay, cancel, discard and restore are there.")
    ticked = request.GET.getlist("task")
    text = f"task:{','.join(ticked)}" if ticked else request.GET.get("filter", "")
    if not ticked and "filter" not in request.GET:
        return missing(request, "No task is ticked: tick those that you mean, or filter the list and take all.")
    try:
        found = preview_operation(kind, read_filter(text), None)
    except Refused as refusal:
        return page(
            request,
            "ops/operation_refused.html",
            title=kind.value.capitalize(),
            nav="operations",
            status=422,
            kind=kind.value,
            text=text,
            fault=refusal.detail,
        )
    return confirm_page(request, found, {"key": str(uuid.uuid4())})


def kind_of(text: str) -> OperationKind | None:
    """The kind of that name."""
    return OperationKind(text) if text in set(OperationKind) else None


def confirm_page(
    request: HttpRequest,
    found: Preview,
    said: dict[str, str],
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
) -> HttpResponse:
    """The page of confirmation, with what was said before where it was refused."""
    fields, faults = with_faults(_fields(found, said), errors)
    verb = story.VERBS[found.kind]
    return page(
        request,
        "ops/operation_new.html",
        title=f"{verb} many tasks",
        nav="operations",
        status=status,
        kind=found.kind,
        verb=verb,
        says=story.SAYS[found.kind],
        filter=format_filter(found.filter),
        count=found.count,
        counted=wording.plural(found.count, "task"),
        too_many=found.count > ITEMS_MAX,
        items_max=wording.count(ITEMS_MAX),
        lines=lines_of(found.sample, now=found.as_of),
        as_of=repr(found.as_of),
        frozen=when(found.as_of),
        fields=fields,
        key=said["key"],
        faults=faults,
    )


def _fields(found: Preview, said: dict[str, str]) -> list[Field]:
    rate = Field(
        "rate",
        "Tasks per second",
        said.get("rate", f"{RATE_DEFAULT:g}"),
        help=f"At most {RATE_MAX:,.0f}. What is not used is not made up for.",
        kind="number",
        required=True,
        extra={"min": "0.1", "max": f"{RATE_MAX:g}", "step": "any", "inputmode": "decimal"},
    )
    reason = Field("reason", "Reason", said.get("reason", ""), required=True, extra={"maxlength": "200"})
    fields = [rate, reason]
    if found.count > TYPED_ABOVE:
        help_text = f"Above {TYPED_ABOVE} tasks the number is typed, so that nobody confirms it unread."
        fields.append(
            Field(
                "typed",
                f"Type {found.count} to confirm",
                said.get("typed", ""),
                help=help_text,
                required=True,
                extra={"inputmode": "numeric"},
            )
        )
    return fields
