"""Webhooks over REST: a tenant's token works on its own; a token of every tenant says whose when it makes one."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from scheduler.api.access import OPERATE, READ, caller_of, tenant_for_submit
from scheduler.api.answers import In, Out, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.router import Router
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool
from scheduler.api.webhook_schemas import (
    DeliveriesOut,
    NewWebhookOut,
    WebhookEditIn,
    WebhookIn,
    WebhookOut,
    WebhookPageOut,
    WebhookReplayIn,
    present_delivery,
    present_new,
    present_webhook,
)
from scheduler.errors import FieldError, Forbidden, Refused
from scheduler.policy.types import TenantId
from scheduler.policy.webhooks import Standing
from scheduler.reads.tasks import ID_MAX, PAGE_MAX
from scheduler.reads.webhooks import deliveries_of, find_webhook, list_webhooks
from scheduler.services.changes import Author
from scheduler.services.tokens import Principal
from scheduler.services.webhooks import (
    NewSecret,
    add_webhook,
    edit_webhook,
    remove_webhook,
    replay_webhook,
    rotate_secret,
    test_webhook,
)

router = Router(tags=["webhooks"])


class PageIn(In):
    """Which page."""

    cursor: Annotated[int, Field(ge=0, le=ID_MAX)] | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


def _scope(request: HttpRequest) -> TenantId | None:
    return caller_of(request).tenant_id


def _check_everywhere(caller: Principal, named: str | None) -> None:
    """Raise Forbidden for a tenant's own token, Refused when a tenant is named as well."""
    if caller.tenant_id is not None:
        raise Forbidden("Only a token of every tenant has the events of every tenant.", code="needs_all_tenants")
    if named is not None:
        detail = "Name a tenant or ask for every tenant, not both."
        raise Refused(detail, code="bad_webhook", errors=(FieldError(("every_tenant",), detail),))


def _author(request: HttpRequest, reason: str) -> Author:
    return Author(caller_of(request).actor, "api", reason)


@router.get("/webhooks", auth=READ, operation_id="list_webhooks", response={200: WebhookPageOut, PROBLEMS: Problem})
@in_pool
def get_webhooks(request: HttpRequest, wanted: Query[PageIn]) -> HttpResponse:
    """Webhooks, oldest first."""
    rows = list_webhooks(_scope(request), after=wanted.cursor or 0, rows_max=wanted.limit + 1)
    page = rows[: wanted.limit]
    cursor = page[-1].id if len(rows) > wanted.limit else None
    return respond(200, WebhookPageOut(webhooks=[present_webhook(row) for row in page], next_cursor=cursor))


@router.post("/webhooks", auth=OPERATE, operation_id="add_webhook", response={201: NewWebhookOut, PROBLEMS: Problem})
@in_pool
def post_webhook(request: HttpRequest, body: WebhookIn) -> HttpResponse:
    """Have events posted to a URL, signed, from now on. The secret is shown this once."""
    tenant = None if body.every_tenant else tenant_for_submit(caller_of(request), body.tenant)
    if body.every_tenant:
        _check_everywhere(caller_of(request), body.tenant)

    def act() -> tuple[int, Out]:
        return 201, _with_secret(add_webhook(tenant, body.url, tuple(body.events), _author(request, body.reason)))

    return once_per_key(request, act, kept=_without_secret, rings=False)


@router.get(
    "/webhooks/{webhook_id}", auth=READ, operation_id="get_webhook", response={200: WebhookOut, PROBLEMS: Problem}
)
@in_pool
def get_webhook(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """One webhook, and how far it got."""
    return respond(200, present_webhook(find_webhook(webhook_id, _scope(request))))


@router.patch(
    "/webhooks/{webhook_id}", auth=OPERATE, operation_id="edit_webhook", response={200: WebhookOut, PROBLEMS: Problem}
)
@in_pool
def patch_webhook(request: HttpRequest, webhook_id: int, body: WebhookEditIn) -> HttpResponse:
    """Change, pause or resume a webhook, also one that was disabled. 409 when it was changed meanwhile."""
    changes: dict[str, Any] = {}
    if body.url is not None:
        changes["url"] = body.url
    if body.events is not None:
        changes["events"] = tuple(dict.fromkeys(body.events))
    if body.state is not None:
        changes["standing"] = Standing(body.state)
    row = edit_webhook(webhook_id, _scope(request), body.version, changes, _author(request, body.reason))
    return respond(200, present_webhook(row))


@router.delete(
    "/webhooks/{webhook_id}", auth=OPERATE, operation_id="remove_webhook", response={204: None, PROBLEMS: Problem}
)
@in_pool
def delete_webhook(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Remove a webhook with the log of its deliveries."""
    remove_webhook(webhook_id, _scope(request), _author(request, ""))
    return HttpResponse(status=204)


@router.post(
    "/webhooks/{webhook_id}/rotate",
    auth=OPERATE,
    operation_id="rotate_webhook",
    response={200: NewWebhookOut, PROBLEMS: Problem},
)
@in_pool
def post_rotate(request: HttpRequest, webhook_id: int, body: ReasonIn | None = None) -> HttpResponse:
    """Another secret, which signs from now on; shown this once."""

    def act() -> tuple[int, Out]:
        author = _author(request, body.reason if body is not None else "")
        return 200, _with_secret(rotate_secret(webhook_id, _scope(request), author))

    return once_per_key(request, act, kept=_without_secret, rings=False)


@router.post(
    "/webhooks/{webhook_id}/replay",
    auth=OPERATE,
    operation_id="replay_webhook",
    response={200: WebhookOut, PROBLEMS: Problem},
)
@in_pool
def post_replay(request: HttpRequest, webhook_id: int, body: WebhookReplayIn) -> HttpResponse:
    """Deliver again what lies beyond a `seq`, as far back as events are kept."""

    def act() -> tuple[int, Out]:
        author = _author(request, body.reason)
        return 200, present_webhook(replay_webhook(webhook_id, _scope(request), body.after, author))

    return once_per_key(request, act, rings=False)


@router.post(
    "/webhooks/{webhook_id}/test",
    auth=OPERATE,
    operation_id="test_webhook",
    response={202: WebhookOut, PROBLEMS: Problem},
)
@in_pool
def post_test(request: HttpRequest, webhook_id: int, body: ReasonIn | None = None) -> HttpResponse:
    """Have one event `webhook.test` posted to this webhook alone, paused or not; its deliveries show the result."""

    def act() -> tuple[int, Out]:
        author = _author(request, body.reason if body is not None else "")
        return 202, present_webhook(test_webhook(webhook_id, _scope(request), author))

    return once_per_key(request, act, rings=False)


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    auth=READ,
    operation_id="list_deliveries",
    response={200: DeliveriesOut, PROBLEMS: Problem},
)
@in_pool
def get_deliveries(request: HttpRequest, webhook_id: int, wanted: Query[PageIn]) -> HttpResponse:
    """The tries of the last week to deliver, newest first."""
    rows = deliveries_of(webhook_id, _scope(request), before=wanted.cursor, rows_max=wanted.limit + 1)
    page = rows[: wanted.limit]
    cursor = page[-1].id if len(rows) > wanted.limit else None
    return respond(200, DeliveriesOut(deliveries=[present_delivery(row) for row in page], next_cursor=cursor))


def _with_secret(made: NewSecret) -> NewWebhookOut:
    return present_new(made.webhook, made.secret)


def _without_secret(answer: Out) -> Out:
    return answer.model_copy(update={"secret": None})
