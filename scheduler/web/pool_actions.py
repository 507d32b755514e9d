"""Pausing and resuming a pool: POST forms that work without scripts, answered by a redirect and a notice with its undo."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import Conflict, NotFound, Refused
from scheduler.services.pools import pause_pool, resume_pool
from scheduler.web.access import OPERATE_POOL, needs
from scheduler.web.pages import pool_page
from scheduler.web.toast import Toast, Undo, leave_toast

REASON_CHARS_MAX = 200


@require_POST
@needs(OPERATE_POOL)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Nothing new starts in the pool; what runs goes on. The reason is required: the next person will read it."""
    reason = _reason(request)
    if not reason:
        return pool_page(request, name, status=422, fault="Say why, so that the next person knows when to resume.")
    toast = Toast(f"Paused {name}. Nothing new starts; what runs goes on.", undo=_undo("ops:pool-resume", name, "undo"))
    return _act(request, name, lambda: pause_pool(name, actor=_actor(request), reason=reason), toast)


@require_POST
@needs(OPERATE_POOL)
def resume(request: HttpRequest, name: str) -> HttpResponse:
    """Start again with what waits."""
    reason = _reason(request)
    before = request.POST.get("paused_for", "").strip()[:REASON_CHARS_MAX] or "undo"
    toast = Toast(f"Resumed {name}.", undo=_undo("ops:pool-pause", name, before))
    return _act(request, name, lambda: resume_pool(name, actor=_actor(request), reason=reason), toast)


def _act(request: HttpRequest, name: str, action: Callable[[], object], toast: Toast) -> HttpResponse:
    try:
        action()
    except NotFound:
        return pool_page(request, name)
    except Refused as refusal:
        return pool_page(request, name, status=422, reason=_reason(request), fault=refusal.detail)
    except Conflict as conflict:
        return pool_page(request, name, status=409, reason=_reason(request), fault=conflict.detail)
    leave_toast(request, toast)
    response = redirect("ops:pool", name=name)
    response.status_code = 303
    return response


def _undo(route: str, name: str, reason: str) -> Undo:
    return Undo(reverse(route, kwargs={"name": name}), reason)


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:REASON_CHARS_MAX]


def _actor(request: HttpRequest) -> str:
    return str(request.user.get_username())
