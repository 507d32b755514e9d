"""The notice that a list, which never moves by itself, has newer rows: asked for every ten seconds by an open page.

It is drawn beside the rows and holds one link. It has no token, no role and no zone.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from scheduler.errors import Refused
from scheduler.policy.filters import DEAD, Filter, Is, Key
from scheduler.reads.task_lists import FoundCount, count_above, read_filter
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.filtering import address, place_of

DEAD_ONLY: Final = Is(Key.STATE, (DEAD,))
_ASKS: Final = '<i id="again" hx-swap-oob="true" hidden hx-get="{}" hx-trigger="every 10s" hx-swap="none"></i>'
_SAYS: Final = '<p id="fresh" class="banner" hx-swap-oob="true"><a href="{}">{} · Show</a></p>'


def fresh_url(asked: Filter, top: int, *, groups: bool = False, seen: str = "") -> str:
    """Where a page whose first row has this place asks for what is above it; `groups`: of the list of groups."""
    more = {"since": top, "groups": "yes" if groups else None, "seen": seen or None}
    return address(reverse("ops:tasks-fresh"), asked, **more)


@require_safe
@needs(VIEW_CONSOLE)
def fresh(request: HttpRequest) -> HttpResponse:
    """How many match above a place; 204 where it is what the page says in `seen`."""
    groups, since, seen = request.GET.get("groups") == "yes", place_of(request, "since"), request.GET.get("seen", "")
    asked = Filter()
    try:
        asked = read_filter(request.GET.get("filter", ""))
        sought = Filter((DEAD_ONLY, *asked.terms)) if groups else asked
        found = FoundCount(0) if since is None else count_above(sought, None, since)
    except Refused:
        found = FoundCount(0)
    said = f"{found.n}{'+' if found.more else ''}"
    if found.n == 0 or said == seen:
        response = HttpResponse(status=204)
    else:
        path = reverse("ops:dead" if groups else "ops:tasks")
        text = f"{said} more have died" if groups else f"{said} new"
        asks = fresh_url(asked, since or 0, groups=groups, seen=said)
        response = HttpResponse(format_html(_SAYS + _ASKS, address(path, asked), text, asks))
    response["Cache-Control"] = "no-store, private"
    return response
