"""The answers to what was typed into the box in the header. What is meant for sure and stands alone is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.live import wording
from scheduler.reads.search import TEXT_MAX, FoundRow, find
from scheduler.web.access import VIEW_CONSOLE, needs, tenant_of
from scheduler.web.shell import page

_AT: Final[dict[str, Callable[[str], str]]] = {
    "task": lambda ref: reverse("ops:task", kwargs={"task_id": int(ref)}),
    "run": lambda ref: reverse("ops:run", kwargs={"run_id": int(ref)}),
    "schedule": lambda ref: reverse("ops:schedule", kwargs={"schedule_id": int(ref)}),
    "operation": lambda ref: reverse("ops:operation", kwargs={"operation_id": int(ref)}),
    "pool": lambda ref: reverse("ops:pool", kwargs={"name": ref}),
    "resource": lambda ref: reverse("ops:resource", kwargs={"name": ref}),
    "tenant": lambda ref: reverse("ops:tenant", kwargs={"slug": ref}),
}
_OWN_PAGES: Final = ("tenant",)
"""What an account of one tenant may open."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of the answers; `url` is empty for what has no page, or none that the asker may open."""

    kind: str
    title: str
    under: str
    owner: str
    state: str
    url: str


@require_safe
@needs(VIEW_CONSOLE, own=lambda _tenant, _request, _address: True)
def search(request: HttpRequest) -> HttpResponse:
    """What has this number, this key, or a name that begins so."""
    text, tenant = request.GET.get("q", "").strip(), tenant_of(request)
    found = find(text, tenant)
    hits = [_hit(row, bound=tenant is not None) for row in (*found.exact, *found.begins)]
    if len(hits) == 1 and found.exact and hits[0].url:
        return redirect(hits[0].url)
    return page(
        request,
        "ops/search.html",
        title="Search",
        nav="search",
        asked=text,
        too_long=len(text) > TEXT_MAX,
        hits=hits,
        headline=f"{wording.plural(len(hits), 'thing')} for “{text}”",
        own=tenant is not None,
    )


def _hit(row: FoundRow, *, bound: bool) -> Hit:
    numbered = row.ref.isdecimal() and row.kind not in {"pool", "resource", "tenant"}
    title = (row.name or f"{row.kind} {row.ref}") if numbered else row.ref
    under = f"{row.kind} {row.ref}" if numbered and row.name else "" if numbered else row.name
    opens = row.kind in _AT and (not bound or row.kind in _OWN_PAGES)
    state = row.state.replace("_", " ").capitalize()
    return Hit(row.kind.capitalize(), title, under, row.owner, state, _AT[row.kind](row.ref) if opens else "")
