"""What moves on the page of an operation: how far it is, drawn again every two seconds until it is over.

It holds nothing that a person can be in the middle of, so that it can be swapped at any moment; buttons and rows stand
outside. It has no token, no role and no zone: everybody is shown the same.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.reads.operations import OperationDetail, load_operation
from scheduler.web import operation_story as story
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.shell import missing


@require_safe
@needs(VIEW_CONSOLE)
def progress(request: HttpRequest, operation_id: int) -> HttpResponse:
    """The parts that moved, for a page that shows them already; 204 where they stand as the page says in `seen`."""
    try:
        found = load_operation(operation_id, None)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    html = _draw(found)
    mark = _mark(html)
    unchanged = request.GET.get("seen") == mark
    response = HttpResponse(status=204) if unchanged else HttpResponse(html + _next_look(found, mark))
    response["Cache-Control"] = "no-store, private"
    return response


def moving(found: OperationDetail) -> dict[str, Any]:
    """What the templates of the moving parts need, on the page and by themselves."""
    return {
        "row": found.row,
        "chip": story.chip_of(found.row.state),
        "headline": story.headline(found),
        "did": found.row.applied + found.row.skipped,
        "figures": story.figures_of(found),
        "skips": story.skips_of(found),
    }


def again_url(found: OperationDetail) -> str:
    """Where a page that shows this asks for what is new; nowhere once it is over."""
    return "" if story.is_over(found.row.state) else _url(found, _mark(_draw(found)))


def _draw(found: OperationDetail) -> str:
    return render_to_string("ops/_operation_progress.html", {**moving(found), "again": True})


def _mark(html: str) -> str:
    return blake2s(html.encode(), digest_size=8).hexdigest()


def _url(found: OperationDetail, mark: str) -> str:
    path = reverse("ops:operation-progress", kwargs={"operation_id": found.row.id})
    return f"{path}?seen={mark}"


def _next_look(found: OperationDetail, mark: str) -> str:
    """What asks next takes the place of what asked; once it is over, nothing asks any more."""
    if story.is_over(found.row.state):
        return '<i id="again" hx-swap-oob="true" hidden></i>'
    asks = '<i id="again" hx-swap-oob="true" hidden hx-get="{}" hx-trigger="every 2s" hx-swap="none"></i>'
    return format_html(asks, _url(found, mark))
