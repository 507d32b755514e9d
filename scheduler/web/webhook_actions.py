"""Declaring, pausing, resuming and removing webhooks, new secrets, and deliveries again. A secret is shown once."""

from __future__ import annotations

from typing import Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import Conflict, NotFound, Refused
from scheduler.policy.webhooks import Standing
from scheduler.reads.tenants import tenant_to_show
from scheduler.services.idempotency import Answer, once
from scheduler.services.webhooks import (
    NewSecret,
    add_webhook,
    edit_webhook,
    remove_webhook,
    replay_webhook,
    rotate_secret,
    test_webhook,
)
from scheduler.web.access import EDIT_ACCESS, needs
from scheduler.web.acting import author_of, done
from scheduler.web.filtering import place_of_text
from scheduler.web.shell import missing
from scheduler.web.toast import Toast
from scheduler.web.webhooks_page import webhook_page, webhooks_page

SENT_BEFORE: Final = "This form was sent before, and the secret was shown then. If nobody kept it, make a new one."


@require_POST
@needs(EDIT_ACCESS)
def add(request: HttpRequest) -> HttpResponse:
    """Declare one. The same form sent twice declares one."""
    made: list[NewSecret] = []

    def act() -> Answer:
        tenant = tenant_to_show(request.POST.get("tenant", "").strip())
        url, events = request.POST.get("url", "").strip(), tuple(request.POST.getlist("events"))
        made.append(add_webhook(tenant, url, events, author_of(request)))
        return Answer(201, orjson.dumps({"id": made[-1].webhook.id}).decode())

    try:
        answer = once(f"person {request.user.pk}", request.POST.get("key", ""), b"webhook", act)
    except Refused as refusal:
        return webhooks_page(request, status=422, errors=refusal.errors, fault="" if refusal.errors else refusal.detail)
    if answer.repeated:
        return webhooks_page(request, status=409, fault=SENT_BEFORE)
    request.POST = request.POST.__class__()
    return webhooks_page(request, status=201, made=made[-1])


@require_POST
@needs(EDIT_ACCESS)
def pause_webhook(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Post nothing there until it is resumed; what happens meanwhile is posted then, as long as it is kept."""
    return _stand(request, webhook_id, Standing.PAUSED, "Paused. Events wait until it is resumed.")


@require_POST
@needs(EDIT_ACCESS)
def resume_webhook(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Post again, beginning with a clean slate."""
    return _stand(request, webhook_id, Standing.ACTIVE, "Resumed. What has waited is posted first.")


def _stand(request: HttpRequest, webhook: int, standing: Standing, says: str) -> HttpResponse:
    version = request.POST.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) <= 18):  # noqa: PLR2004 - fits a bigint
        return webhook_page(
            request, webhook, status=422, fault="Say which version you saw: send the form of this page."
        )
    try:
        edit_webhook(webhook, None, int(version), {"standing": standing}, author_of(request))
    except NotFound as fault:
        return missing(request, fault.detail)
    except (Conflict, Refused) as refusal:
        status = 409 if isinstance(refusal, Conflict) else 422
        return webhook_page(request, webhook, status=status, fault=refusal.detail)
    return done(request, _address(webhook), Toast(says))


@require_POST
@needs(EDIT_ACCESS)
def test(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Have one event posted there, to see whether it arrives; while one is on its way there is no other."""
    try:
        test_webhook(webhook_id, None, author_of(request))
    except NotFound as fault:
        return missing(request, fault.detail)
    except Refused as refusal:
        return webhook_page(request, webhook_id, status=422, fault=refusal.detail)
    return done(request, _address(webhook_id), Toast("A test is being posted. What comes of it is shown on this page."))


@require_POST
@needs(EDIT_ACCESS)
def rotate(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Another secret, which signs from now on. The same form sent twice makes one."""
    made: list[NewSecret] = []

    def act() -> Answer:
        made.append(rotate_secret(webhook_id, None, author_of(request)))
        return Answer(200, "{}")

    try:
        answer = once(f"person {request.user.pk}", request.POST.get("key", ""), f"rotate {webhook_id}".encode(), act)
    except NotFound as fault:
        return missing(request, fault.detail)
    except Refused as refusal:
        return webhook_page(request, webhook_id, status=422, fault=refusal.detail)
    if answer.repeated:
        return webhook_page(request, webhook_id, status=409, fault=SENT_BEFORE)
    return webhook_page(request, webhook_id, secret=made[-1].secret)


@require_POST
@needs(EDIT_ACCESS)
def replay(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Post again what lies beyond a place, as far back as events are kept."""
    after = place_of_text(request.POST.get("after", ""))
    if after is None:
        return webhook_page(request, webhook_id, status=422, fault="Give the number of an event, 0 or more.")
    try:
        replay_webhook(webhook_id, None, after, author_of(request))
    except NotFound as fault:
        return missing(request, fault.detail)
    except Refused as refusal:
        return webhook_page(request, webhook_id, status=422, fault=refusal.detail)
    return done(request, _address(webhook_id), Toast(f"What came after event {after} is posted again, in order."))


@require_POST
@needs(EDIT_ACCESS)
def remove(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Remove it with the log of its deliveries. There is no way back."""
    try:
        remove_webhook(webhook_id, None, author_of(request))
    except NotFound as fault:
        return missing(request, fault.detail)
    return done(request, reverse("ops:webhooks"), Toast(f"Removed webhook {webhook_id}. Nothing is posted there."))


def _address(webhook: int) -> str:
    return reverse("ops:webhook", kwargs={"webhook_id": webhook})
