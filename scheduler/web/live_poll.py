"""The poll fallback, ``/ops/_live/<page>/``: the same cached frame over plain HTTP, for browsers whose socket fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from scheduler.live.audience import is_for_tenant
from scheduler.live.frames import Frame, Key, beat, opening, out_of_band
from scheduler.live.newest import newest
from scheduler.live.pages import is_live
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.broken import LOST


def _is_own(tenant: str, request: HttpRequest, address: Mapping[str, Any]) -> bool:
    return is_for_tenant(Key(address["page"], request.GET.get("scope", "")), tenant)


@require_safe
@needs(VIEW_CONSOLE, own=_is_own)
def poll(request: HttpRequest, page: str) -> HttpResponse:
    """The frame; 304 when the ETag is the newest, 204 when ``seq`` is."""
    key = Key(page, request.GET.get("scope", ""))
    if not is_live(key):
        message = f"There is no live page “{page}”."
        raise Http404(message)
    frame = newest.frame(key)
    response = _answer(request, frame)
    response["ETag"] = f'"{frame.seq}"'
    response["X-Live-Age"] = f"{newest.age_s():.1f}"
    if newest.lost():
        response[LOST] = "yes"
    response["Cache-Control"] = "no-store, private"
    patch_vary_headers(response, ["Cookie"])
    return response


def _answer(request: HttpRequest, frame: Frame) -> HttpResponse:
    seq, shape = request.GET.get("seq", ""), request.GET.get("shape", "")
    if request.headers.get("If-None-Match") == f'"{frame.seq}"':
        return HttpResponse(status=304)
    if shape == frame.shape and seq == str(frame.seq):
        return HttpResponse(status=204)
    return HttpResponse(
        out_of_band([beat(frame, newest.age_s(), lost=newest.lost()), *opening(frame, seq=None, shape=shape)])
    )
