"""The list of tasks: a filter, chips, a page that does not move, and the way to older and newer ones."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import Refused
from scheduler.policy.filters import Filter, format_filter
from scheduler.reads.task_lists import find_page
from scheduler.web.access import OPERATE_TASK, VIEW_CONSOLE, needs
from scheduler.web.filtering import address, box_of, bulk_of, place_of, state_chips
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
        status=422 if fault else 200,
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
        may_operate=request.user.has_perm(OPERATE_TASK),
    )
