"""What a person keeps for a browser; making and revoking tokens. A token is shown once and never kept."""

from __future__ import annotations

import time
from typing import Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.reads.task_lists import read_filter
from scheduler.services.idempotency import Answer, once
from scheduler.services.tokens import NewToken, create_token, revoke_token
from scheduler.web.access import EDIT_ACCESS, VIEW_CONSOLE, needs
from scheduler.web.acting import actor_of, done, reason_of
from scheduler.web.look import COLUMNS, LISTS, keep_first_filters, keep_look
from scheduler.web.settings_page import settings_form, tokens_page
from scheduler.web.times import zone_named
from scheduler.web.toast import Toast

DAY_S: Final = 86_400
DAYS_MAX: Final = 3_650
FIRST_CHARS_MAX: Final = 300
MADE_BEFORE: Final = (
    "This form was sent before and made a token, which was shown then. If nobody kept it, revoke it and make another."
)


@require_POST
@needs(VIEW_CONSOLE)
def own(request: HttpRequest) -> HttpResponse:
    """Keep this browser's time zone and what its lists begin with. 422 for a zone or filter that there is not."""
    zone = request.POST.get("zone", "").strip()
    filters = {name: request.POST.get(name, "").strip() for name in LISTS}
    errors = [] if zone_named(zone) else [FieldError(("zone",), "This is no time zone; write one like Europe/Berlin.")]
    for name, text in filters.items():
        try:
            read_filter(text[:FIRST_CHARS_MAX])
        except Refused as refusal:
            errors.append(FieldError((name,), refusal.detail))
        if len(text) > FIRST_CHARS_MAX:
            errors.append(FieldError((name,), f"A filter to begin with has at most {FIRST_CHARS_MAX} characters."))
    if errors:
        return settings_form(request, status=422, errors=errors)
    response = done(request, reverse("ops:settings"), Toast("Kept for this browser."))
    shown = request.POST.getlist("column")
    keep_look(request, response, {"zone": zone, "hidden": "-".join(name for name in COLUMNS if name not in shown)})
    keep_first_filters(request, response, filters)
    return response


@require_POST
@needs(EDIT_ACCESS)
def add_token(request: HttpRequest) -> HttpResponse:
    """Make a token. The same form sent twice makes one."""
    made: list[NewToken] = []

    def act() -> Answer:
        made.append(_create(request))
        return Answer(201, orjson.dumps({"id": made[-1].public_id}).decode())

    try:
        answer = once(f"person {request.user.pk}", request.POST.get("key", ""), b"token", act)
    except (Refused, NotFound) as refusal:
        errors = refusal.errors
        if isinstance(refusal, NotFound):
            errors = (FieldError(("tenant",), refusal.detail),)
        return tokens_page(request, status=422, errors=errors, fault="" if errors else refusal.detail)
    if answer.repeated:
        return tokens_page(request, status=409, fault=MADE_BEFORE)
    request.POST = request.POST.__class__()
    return tokens_page(request, status=201, made=made[-1])


@require_POST
@needs(EDIT_ACCESS)
def drop_token(request: HttpRequest, public_id: str) -> HttpResponse:
    """Make a token useless, everywhere within seconds. There is no way back."""
    try:
        revoke_token(public_id, actor=actor_of(request), reason=reason_of(request))
    except NotFound as fault:
        return tokens_page(request, status=409, fault=f"{fault.detail} It may have been revoked already.")
    return done(request, reverse("ops:tokens"), Toast(f"Revoked cq_{public_id}. It opens nothing from now on."))


def _create(request: HttpRequest) -> NewToken:
    pools = [name.strip() for name in request.POST.get("pools", "").split(",") if name.strip()]
    return create_token(
        scopes=request.POST.getlist("scopes"),
        tenant=request.POST.get("tenant", "").strip() or None,
        pools=pools or None,
        expires_at=_expiry(request.POST.get("days", "").strip()),
        name=request.POST.get("name", "").strip(),
        actor=actor_of(request),
        reason=reason_of(request),
    )


def _expiry(days: str) -> float | None:
    """When a token ends; the day is what matters, so this process's clock will do."""
    if not days:
        return None
    if not (days.isascii() and days.isdigit() and 0 < int(days) <= DAYS_MAX):
        detail = f"Give a number of days from 1 to {DAYS_MAX}, or leave it empty."
        raise Refused(detail, code="bad_expiry", errors=(FieldError(("days",), detail),))
    return time.time() + int(days) * DAY_S
