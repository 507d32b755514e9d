"""The list of schedules: how they all stand, and a page of them with what is ahead and what came last."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, Refused
from scheduler.reads.schedule_pages import Page, figures, list_page
from scheduler.web import schedule_words
from scheduler.web.access import EDIT_SCHEDULE, VIEW_CONSOLE, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import page
from scheduler.web.task_story import when

STATES: Final = (("", "any"), ("active", "active"), ("paused", "paused"), ("faulty", "cannot be decided"))


@require_safe
@needs(VIEW_CONSOLE)
def schedules(request: HttpRequest) -> HttpResponse:
    """A page of schedules; what is asked for stands in the address. 422 when that means nothing."""
    asked = {name: request.GET.get(name, "").strip() for name in ("state", "tenant")}
    after = number_in(request.GET.get("after", ""))
    errors: list[FieldError] = []
    found = Page((), None)
    if asked["state"] not in dict(STATES):
        errors = [FieldError(("state",), "Choose one of the list.")]
    else:
        try:
            found = list_page(asked["tenant"], asked["state"], after=after)
        except Refused as refusal:
            errors = list(refusal.errors)
    fields, _ = with_faults(
        [
            Field("state", "State", asked["state"], kind="select", options=STATES),
            Field("tenant", "Tenant", asked["tenant"], extra={"maxlength": "64", "placeholder": "any"}),
        ],
        errors,
    )
    stand = figures()
    filters = {name: value for name, value in asked.items() if value}
    here = reverse("ops:schedules")
    return page(
        request,
        "ops/schedules.html",
        title="Schedules",
        nav="schedules",
        status=422 if errors else 200,
        fields=fields,
        faulty=bool(errors),
        filtered=bool(filters),
        paged=after > 0,
        figures=schedule_words.list_figures(stand),
        looked=when(stand.now),
        lines=[schedule_words.line_of(listed, ahead, now=stand.now) for listed, ahead in found.rows],
        older="" if found.next_after is None else f"{here}?{urlencode({**filters, 'after': found.next_after})}",
        newer=f"{here}?{urlencode(filters)}" if after else "",
        may_edit=may(request, EDIT_SCHEDULE),
    )


def number_in(text: str) -> int:
    """An id out of an address; 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0  # noqa: PLR2004 - 2**63 has more
