"""Pausing and resuming a pool: forms that work without scripts, answered by a redirect and a notice with its undo."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import NotFound, Refused
from scheduler.live import wording
from scheduler.reads.pools import pool_detail
from scheduler.services.pools import pause_pool, resume_pool
from scheduler.web.access import OPERATE_POOL, needs
from scheduler.web.acting import actor_of, done, reason_of
from scheduler.web.pages import PAUSES, pool_page
from scheduler.web.toast import Toast, Undo

ASK_WHY: Final = "Say why, so that the next person knows when to resume."
PAUSE_CHOICES: Final = frozenset(seconds for seconds, _ in PAUSES if seconds)


@require_POST
@needs(OPERATE_POOL)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Nothing new starts in the pool; what runs goes on. The reason is required: the next person will read it."""
    reason = reason_of(request)
    if not reason:
        return pool_page(request, name, status=422, fault=ASK_WHY)
    try:
        before = pool_detail(name).pause
        if before:
            fault = f"{before.by} paused it already: “{before.reason}”. Nothing was changed."
            return pool_page(request, name, status=409, reason=reason, fault=fault)
        for_s = request.POST.get("for_s", "")
        pause_pool(name, for_s=float(for_s) if for_s in PAUSE_CHOICES else None, actor=actor_of(request), reason=reason)
    except NotFound:
        return pool_page(request, name)
    except Refused as refusal:
        return pool_page(request, name, status=422, reason=reason, fault=refusal.detail)
    undo = Undo(reverse("ops:pool-resume", kwargs={"name": name}), reason="undo")
    ends = f" It resumes by itself in {wording.duration(float(for_s))}." if for_s in PAUSE_CHOICES else ""
    return _done(request, name, Toast(f"Paused {name}. Nothing new starts; what runs goes on.{ends}", undo=undo))


@require_POST
@needs(OPERATE_POOL)
def resume(request: HttpRequest, name: str) -> HttpResponse:
    """Start again with what waits."""
    try:
        before = pool_detail(name).pause
        resume_pool(name, actor=actor_of(request), reason=reason_of(request))
    except NotFound:
        return pool_page(request, name)
    except Refused as refusal:
        return pool_page(request, name, status=422, fault=refusal.detail)
    if before is None:
        return _done(request, name, Toast(f"{name} was running already. Nothing was changed."))
    undo = Undo(reverse("ops:pool-pause", kwargs={"name": name}), reason=before.reason)
    return _done(request, name, Toast(f"Resumed {name}.", undo=undo))


def _done(request: HttpRequest, name: str, toast: Toast) -> HttpResponse:
    return done(request, reverse("ops:pool", kwargs={"name": name}), toast)
