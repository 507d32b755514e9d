"""The list of tenants: what each spends of what it may, how fast, and until when. Drawn at load: rows do not move."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.reads.spending import SORTS, list_spenders
from scheduler.web import tenant_words
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.shell import page

_SORTED_BY: Final = {"risk": "Nearest to its limit", "burn": "Burn", "spent": "Spent", "slug": "Name"}


@require_safe
@needs(VIEW_CONSOLE)
def tenants(request: HttpRequest) -> HttpResponse:
    """Every tenant, the one nearest to the end of its money first."""
    asked = {name: request.GET.get(name, "") for name in ("sort", "q", "before", "after")}
    sort = asked["sort"] if asked["sort"] in SORTS else SORTS[0]
    name = asked["q"].strip()[:64]
    found = list_spenders(sort=sort, name=name, before=asked["before"], after=asked["after"])
    first = found.before is None
    return page(
        request,
        "ops/tenants.html",
        title="Tenants",
        nav="tenants",
        rows=[tenant_words.line_of(row) for row in found.rows],
        headline=tenant_words.headline(found.rows) if found.rows and first and sort == "risk" and not name else "",
        sorts=[(_SORTED_BY[key], _at(sort=key, q=name), key == sort) for key in SORTS],
        sort=sort,
        name=name,
        moved=bool(asked["before"] or asked["after"]),
        first=_at(sort=sort, q=name),
        newer=None if found.before is None else _at(sort=sort, q=name, before=found.before),
        older=None if found.after is None else _at(sort=sort, q=name, after=found.after),
    )


def _at(**query: str) -> str:
    kept = {name: value for name, value in query.items() if value and (name, value) != ("sort", SORTS[0])}
    return reverse("ops:tenants") + (f"?{urlencode(kept)}" if kept else "")
