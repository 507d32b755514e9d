"""The list of engines and workers: what pools have of them, live, and a page of them by name."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, Refused
from scheduler.live.frames import Key
from scheduler.reads.worker_pages import FIRST_ID, Page, figures, list_page, versions
from scheduler.web import worker_words
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import page
from scheduler.web.task_story import when

KINDS: Final = (("", "any"), ("engine", "engines"), ("remote", "remote workers"))


@require_safe
@needs(VIEW_CONSOLE)
def workers(request: HttpRequest) -> HttpResponse:
    """A page of workers; what is asked for stands in the address. 422 when that means nothing."""
    asked = {name: request.GET.get(name, "").strip() for name in ("kind", "pool")}
    after = _after(request)
    errors: list[FieldError] = []
    found = Page((), None, {})
    if asked["kind"] not in dict(KINDS):
        errors = [FieldError(("kind",), "Choose one of the list.")]
    else:
        try:
            found = list_page(kind=asked["kind"] or None, pool=asked["pool"], after=after)
        except Refused as refusal:
            errors = list(refusal.errors)
    fields, _ = with_faults(
        [
            Field("kind", "Kind", asked["kind"], kind="select", options=KINDS),
            Field("pool", "Pool", asked["pool"], extra={"maxlength": "64", "placeholder": "any"}),
        ],
        errors,
    )
    stand = figures()
    filters = {name: value for name, value in asked.items() if value}
    here = reverse("ops:workers")
    on = {} if found.after is None else {**filters, "name": found.after[0], "id": found.after[1]}
    return page(
        request,
        "ops/workers.html",
        title="Workers",
        nav="workers",
        live=Key("workers"),
        status=422 if errors else 200,
        fields=fields,
        faulty=bool(errors),
        filtered=bool(filters),
        paged=after[0] != "",
        figures=worker_words.list_figures(stand),
        versions=versions(),
        looked=when(stand.now),
        lines=[worker_words.line_of(row, found.pools, now=stand.now) for row in found.rows],
        older=f"{here}?{urlencode(on)}" if on else "",
        newer=f"{here}?{urlencode(filters)}" if after[0] else "",
    )


def _after(request: HttpRequest) -> tuple[str, str]:
    """Where the page begins; anything unreadable is the first page."""
    name = request.GET.get("name", "").replace("\x00", "")
    try:
        return (name, str(UUID(request.GET.get("id", ""))))
    except ValueError:
        return ("", FIRST_ID)
