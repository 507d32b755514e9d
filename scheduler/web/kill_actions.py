"""Raising and lifting kills of a tenant, a pool, or everything."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.live.wording import plural
from scheduler.services.kill import kill, lift
from scheduler.web.access import OPERATE_RUN, needs
from scheduler.web.acting import actor_of, done, reason_of
from scheduler.web.kills_page import confirm_page, kills_page, scope_of, word_for
from scheduler.web.toast import Toast


@require_POST
@needs(OPERATE_RUN)
def kill_raise(request: HttpRequest) -> HttpResponse:
    """Kill it, once its name was typed and a reason was given."""
    scope, name = scope_of(request)
    errors = []
    if not reason_of(request):
        errors.append(FieldError(("reason",), "Say why: everybody whose work stands still will read it."))
    if scope is None or request.POST.get("typed", "").strip() != word_for(scope, name):
        errors.append(FieldError(("typed",), "Type it exactly as it is written here."))
    if scope is None or errors:
        return confirm_page(request, status=422, errors=errors)
    try:
        killed = kill(scope, name or None, actor=actor_of(request), reason=reason_of(request), source="ui")
    except Conflict as refusal:
        return confirm_page(request, status=409, fault=f"{refusal.detail} Nothing was changed.")
    except (NotFound, Refused) as refusal:
        return confirm_page(request, status=422, errors=refusal.errors, fault=refusal.detail)
    told = plural(killed.told, "running attempt was", "running attempts were")
    what = f"The {scope} {name}" if name else "Everything"
    return done(request, reverse("ops:kills"), Toast(f"{what} is killed. {told} told to stop; what waits is held."))


@require_POST
@needs(OPERATE_RUN)
def kill_lift(request: HttpRequest) -> HttpResponse:
    """Let what was killed start again."""
    scope, name = scope_of(request)
    if scope is None:
        return kills_page(request, status=422, fault="Nothing of that kind can be killed.")
    try:
        lift(scope, name or None, actor=actor_of(request), reason=reason_of(request), source="ui")
    except Conflict as refusal:
        return kills_page(request, status=409, fault=f"{refusal.detail} Nothing was changed.")
    except (NotFound, Refused) as refusal:
        return kills_page(request, status=422, fault=refusal.detail)
    what = f"The {scope} {name}" if name else "Everything"
    return done(request, reverse("ops:kills"), Toast(f"{what} may start again. What waited goes on in its order."))
