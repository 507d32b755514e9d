"""Webhooks: where events and alerts are posted and how that goes, and one of them with its last deliveries."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound
from scheduler.live import wording
from scheduler.policy.alerts import Alert
from scheduler.policy.states import TaskState
from scheduler.policy.webhooks import ALERTS, TRANSITION_PREFIX, Standing
from scheduler.reads.webhooks import DeliveryRow, WebhookRow, deliveries_of, find_webhook, list_webhooks
from scheduler.web.access import EDIT_ACCESS, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.filtering import place_of
from scheduler.web.shell import missing, page
from scheduler.web.task_story import Chip, When, when

ROWS: Final = 50
DELIVERIES: Final = 20
ALERT_SAYS: Final = {
    Alert.BUDGET: "a budget reached a part that its owner is told of",
    Alert.RUN_CAP: "a run came near one of its caps",
    Alert.RUN_STOPPED: "a run was killed at one of its caps",
    Alert.LIMIT_PAUSED: "a provider wants money; its limit is paused",
    Alert.BREAKER_OPEN: "a provider counts as down",
    Alert.BREAKER_CLOSED: "it is back",
    Alert.WEBHOOK_DISABLED: "a webhook failed for too long",
}
_STATES: Final = {
    Standing.ACTIVE: Chip("ok", "Active", "ok"),
    Standing.PAUSED: Chip("pause", "Paused", "quiet"),
    Standing.DISABLED: Chip("cross", "Switched off: it failed too long", "bad"),
}


@dataclass(frozen=True, slots=True)
class HookLine:
    """A webhook for the list."""

    hook: WebhookRow
    chip: Chip
    events: str
    trouble: str
    paused: bool


@dataclass(frozen=True, slots=True)
class TryLine:
    """A try to deliver: what it carried, and what came of it."""

    at: When
    says: str
    tone: str
    what: str
    first: int


@require_safe
@needs(EDIT_ACCESS)
def webhooks(request: HttpRequest) -> HttpResponse:
    """Where events and alerts are posted, and how that goes."""
    return webhooks_page(request)


def webhooks_page(
    request: HttpRequest, *, status: int = 200, fault: str = "", errors: Sequence[FieldError] = (), **made: Any
) -> HttpResponse:
    """The list with its form; after a refusal with the input kept, after a success with the secret, this once."""
    fields, loose = with_faults(_fields(request), errors)
    chosen = request.POST.getlist("events")
    after = request.GET.get("after", "")
    rows = list_webhooks(None, after=int(after) if after.isascii() and after.isdigit() else 0, rows_max=ROWS + 1)
    return page(
        request,
        "ops/webhooks.html",
        title="Webhooks",
        nav="settings",
        status=status,
        lines=[_hook_line(row) for row in rows[:ROWS]],
        older=f"?after={rows[ROWS - 1].id}" if len(rows) > ROWS else "",
        older_says="More",
        newer=reverse("ops:webhooks") if after else "",
        newer_says="First",
        fields=fields,
        groups=_groups(chosen),
        event_fault=" ".join(each.msg for each in errors if each.loc[:1] == ("events",)),
        faults=[text for text in (fault, *loose) if text and text not in {e.msg for e in errors if "events" in e.loc}],
        key=secrets.token_urlsafe(12),
        **made,
    )


def _hook_line(hook: WebhookRow) -> HookLine:
    trouble = ""
    if hook.failures:
        since = "" if hook.failing_since is None else f" for {wording.duration(hook.now - hook.failing_since)}"
        trouble = f"{wording.plural(hook.failures, 'failure')} in a row{since}"
    events = ", ".join(hook.events) or "all events"
    return HookLine(hook, _STATES[hook.standing], events, trouble, paused=hook.standing is not Standing.ACTIVE)


@require_safe
@needs(EDIT_ACCESS)
def webhook(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """One of them: how it stands, its last deliveries, and what can be done with it."""
    return webhook_page(request, webhook_id)


def webhook_page(
    request: HttpRequest, webhook_id: int, *, status: int = 200, fault: str = "", secret: str = ""
) -> HttpResponse:
    """The page, after a refused action with the fault; with a new secret, this once."""
    older = place_of(request, "older")
    try:
        hook = find_webhook(webhook_id, None)
        rows = deliveries_of(webhook_id, None, before=older, rows_max=DELIVERIES + 1)
    except NotFound as missed:
        return missing(request, missed.detail)
    path = reverse("ops:webhook", kwargs={"webhook_id": webhook_id})
    failed = next((row.first for row in reversed(rows[:DELIVERIES]) if row.first and _failed(row)), None)
    return page(
        request,
        "ops/webhook.html",
        title=f"Webhook {webhook_id}",
        nav="settings",
        status=status,
        line=_hook_line(hook),
        tries=[_try_line(row) for row in rows[:DELIVERIES]],
        tested=_result(rows[:1]),
        from_place=request.POST.get("after") or (max(failed - 1, 0) if failed is not None else hook.cursor),
        looked=when(hook.now),
        path=path,
        older=f"{path}?older={rows[DELIVERIES - 1].id}" if len(rows) > DELIVERIES else "",
        newer=path if older is not None else "",
        newer_says="Newest",
        reason=request.POST.get("reason", ""),
        fault=fault,
        secret=secret,
        key=secrets.token_urlsafe(12),
    )


@require_safe
@needs(EDIT_ACCESS)
def tested(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """What came of a test, for an open page that asks every second; 204 while it is on its way."""
    try:
        hook = find_webhook(webhook_id, None)
        rows = deliveries_of(webhook_id, None, before=None, rows_max=DELIVERIES)
    except NotFound as missed:
        return missing(request, missed.detail)
    if hook.test_at is not None:
        response = HttpResponse(status=204)
    else:
        response = render(request, "ops/_tested.html", {"tested": _result(rows), "oob": True})
    response["Cache-Control"] = "no-store, private"
    return response


def _result(rows: Sequence[DeliveryRow]) -> TryLine | None:
    """The newest test among these tries."""
    return next((_try_line(row) for row in rows if row.first == 0), None)


def _failed(row: DeliveryRow) -> bool:
    return row.status is None or not 200 <= row.status < 300  # noqa: PLR2004 - what HTTP calls success


def _try_line(row: DeliveryRow) -> TryLine:
    said = f"answered {row.status}" if row.status is not None else (row.error or "no answer")
    took = f"{said} after {wording.duration(row.took_s)}"
    what = f"{wording.plural(row.events, 'event')}, {row.first} to {row.last}" if row.first else "a test"
    return TryLine(when(row.at), took, "bad" if _failed(row) else "ok", what, row.first)


def _fields(request: HttpRequest) -> list[Field]:
    value = {name: request.POST.get(name, "") for name in ("url", "tenant", "reason")}
    return [
        Field("url", "Post to", value["url"], kind="url", required=True, help="An HTTPS address of the receiver."),
        Field("tenant", "Tenant", value["tenant"], help="Its slug. Left empty, the events of every tenant."),
        Field("reason", "Reason", value["reason"], help="Kept in the audit.", extra={"maxlength": "200"}),
    ]


def _groups(chosen: Sequence[str]) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    alerts = [(ALERTS, "all of them, also those that are added later"), *ALERT_SAYS.items()]
    tasks = [(f"{TRANSITION_PREFIX}{state}", "") for state in TaskState]
    named = (("Alerts", alerts), ("What becomes of tasks", tasks))
    return [(title, [(str(name), says, name in chosen) for name, says in lines]) for title, lines in named]
