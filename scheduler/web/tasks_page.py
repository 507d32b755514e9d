"""The list of tasks: a filter, chips, a page that does not move, and the way to older and newer ones."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, Refused
from scheduler.policy.filters import Filter, format_filter
from scheduler.reads.saved_filters import saved_filters
from scheduler.reads.task_lists import find_page
from scheduler.web.access import OPERATE_TASK, VIEW_CONSOLE, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.filtering import address, box_of, bulk_of, place_of, state_chips
from scheduler.web.fresh_rows import fresh_url
from scheduler.web.shell import page
from scheduler.web.task_rows import lines_of, sum_of
from scheduler.web.task_story import when

CHIPS: Final = (
    ("All", ""),
    ("Waiting", "waiting"),
    ("Running", "running"),
    ("Retrying", "retrying"),
    ("Succeeded", "succeeded"),
    ("Dead letters", "dead"),
    ("Cancelled", "cancelled"),
)


@require_safe
@needs(VIEW_CONSOLE)
def tasks(request: HttpRequest) -> HttpResponse:
    """Tasks that match, newest first. A faulty filter is answered with 422 and what was shown before."""
    return tasks_page(request)


def tasks_page(request: HttpRequest, *, status: int = 200, save_errors: Sequence[FieldError] = ()) -> HttpResponse:
    """The list, after a refused action on its filter with what was typed and the faults beside it."""
    path = reverse("ops:tasks")
    box = box_of(request)
    asked, fault = box.asked, box.fault
    places: dict[str, int | None] = (
        {} if fault else {"older": place_of(request, "older"), "newer": place_of(request, "newer")}
    )
    try:
        found = find_page(asked, None, **places)
    except Refused as refusal:
        fault, asked = refusal.detail, Filter()
        found = find_page(asked, None)
    return page(
        request,
        "ops/tasks.html",
        title="Tasks",
        nav="tasks",
        status=422 if fault else status,
        box={"text": box.text, "fault": fault, "was": format_filter(asked), "path": path},
        chips=state_chips(path, asked, CHIPS),
        lines=lines_of(found.rows, now=found.as_of),
        sum=sum_of(found.count),
        asked=format_filter(asked),
        found=found,
        looked=when(found.as_of),
        again=address(path, asked),
        older=address(path, asked, older=found.older) if found.older is not None else "",
        older_says="Look further back" if found.stopped else "Older",
        newer=address(path, asked, newer=found.newer) if found.newer is not None else "",
        bulk=bulk_of(asked),
        may_operate=may(request, OPERATE_TASK),
        fresh_url=fresh_url(asked, found.top) if found.newer is None else "",
        **_saved(request, asked, save_errors),
    )


def _saved(request: HttpRequest, asked: Filter, errors: Sequence[FieldError]) -> dict[str, Any]:
    """The filters that are kept under a name, the form that keeps this one, and how to ask for the same elsewhere."""
    path, text = reverse("ops:tasks"), format_filter(asked)
    known = saved_filters(request.user.pk or 0)
    name = Field("name", "Save this filter as", request.POST.get("name", ""), extra={"maxlength": "60"}, required=True)
    fields, loose = with_faults([name], errors)
    return {
        "saved": [(row, f"{path}?{urlencode({'filter': row.filter})}", row.filter == text) for row in known],
        "save_fields": fields,
        "save_faults": loose,
        "save_url": address(reverse("ops:filter-save"), asked),
        "save_shared": request.POST.get("shared") == "on",
        "commands": _commands(request, text),
    }


def _commands(request: HttpRequest, text: str) -> list[str]:
    """The same question on the command line and over REST."""
    url = request.build_absolute_uri("/api/v1/tasks")
    asks = f" -G --data-urlencode {shlex.quote(f'filter={text}')}" if text else ""
    return [
        f"cronoq list {shlex.quote(text)}" if text else "cronoq list",
        f'curl -H "Authorization: Bearer $CRONOQ_TOKEN"{asks} {url}',
    ]
