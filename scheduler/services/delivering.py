"""What of a webhook's events is posted next, and what follows when it arrived or did not.

The post itself happens between two transactions, and holds none. A process that dies in between has confirmed nothing:
the same stretch is posted again, under the same id. Two processes at once would post it twice and go on once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson
from django.db import transaction

from scheduler.policy.alerts import Alert
from scheduler.policy.types import TenantId
from scheduler.policy.webhooks import (
    EVENTS_PER_POST_MAX,
    Standing,
    SwitchOff,
    decide_after_failure,
    wants,
    wants_transitions,
)
from scheduler.services.changes import Author, record
from scheduler.services.events import RETURN_S, announce
from scheduler.services.webhooks import secret_of
from scheduler.store import events as event_store
from scheduler.store import webhooks as store
from scheduler.store.webhooks import WebhookRow

EVENTS_LOOKED_AT_MAX: Final = 500
CLAIM_S: Final = 60.0
"""Longer than any post may take."""
DELIVERIES_KEEP_S: Final = 7 * 86_400.0
FORGET_MAX: Final = 5_000

TEST: Final = "webhook.test"
"""The type of an event that somebody asked for to see whether it arrives."""

SYSTEM: Final = Author("system", "system")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events to post: from behind `cursor` up to `last`. `message_id` is the same each time it is tried."""

    webhook: int
    tenant: TenantId | None
    url: str
    secret: bytes
    body: bytes
    events: int
    cursor: int
    first: int
    last: int
    failures: int
    failing_for_s: float
    test_at: float | None = None

    @property
    def message_id(self) -> str:
        """By it a receiver knows what it has had already."""
        if self.test_at is not None:
            return f"cronoq-webhook-{self.webhook}-test-{self.test_at * 1000:.0f}"
        return f"cronoq-webhook-{self.webhook}-{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Attempted:
    """How a post went: `status` None means that no answer came, `error` None that it arrived."""

    status: int | None
    took_s: float
    error: str | None = None
    retry_after_s: float | None = None


def next_stretch(webhook: int) -> Stretch | None:
    """What to post next; None when there is nothing, or somebody else is at it. Claims it."""
    with transaction.atomic():
        row = store.lock(webhook, None)
        if row is None:
            return None
        if row.test_at is not None and row.test_due_at is not None and row.test_due_at <= row.now:
            store.claim_test(webhook, seconds=CLAIM_S)
            return _test(row, row.test_at)
        if row.standing is not Standing.ACTIVE or row.due_at > row.now:
            return None
        all_of_them = wants_transitions(row.events)
        bounds = event_store.load_bounds(row.tenant)
        start = max(row.cursor, bounds.kept_from if all_of_them else bounds.alerts_from)
        load = event_store.load if all_of_them else event_store.load_alerts
        found = load(row.tenant, after=start, events_max=EVENTS_LOOKED_AT_MAX)
        if row.sending_to is not None and row.sending_to > start:
            found = [event for event in found if event.seq <= row.sending_to]
        chosen = [event for event in found if wants(row.events, event.type)][:EVENTS_PER_POST_MAX]
        if not chosen:
            if found:
                store.pass_over(webhook, found[-1].seq)
            return None
        lost = {"after": row.cursor, "until": start} if start > row.cursor else None
        events = [event_store.told(event) for event in chosen]
        body = {"webhook": webhook, "tenant": row.tenant_slug, "lost": lost, "events": events}
        store.claim(webhook, sending_to=chosen[-1].seq, seconds=CLAIM_S)
        return Stretch(
            webhook=webhook,
            tenant=row.tenant,
            url=row.url,
            secret=secret_of(row.salt),
            body=orjson.dumps(body),
            events=len(chosen),
            cursor=row.cursor,
            first=chosen[0].seq,
            last=chosen[-1].seq,
            failures=row.failures,
            failing_for_s=0.0 if row.failing_since is None else row.now - row.failing_since,
        )


def _test(row: WebhookRow, asked_at: float) -> Stretch:
    """An event of this webhook alone. It has no place among the others: 0, before the first there ever was."""
    event = {"seq": 0, "type": TEST, "at": datetime.fromtimestamp(asked_at, UTC).isoformat(), "data": {}}
    body = {"webhook": row.id, "tenant": row.tenant_slug, "lost": None, "events": [event]}
    return Stretch(
        webhook=row.id,
        tenant=row.tenant,
        url=row.url,
        secret=secret_of(row.salt),
        body=orjson.dumps(body),
        events=1,
        cursor=row.cursor,
        first=0,
        last=0,
        failures=row.failures,
        failing_for_s=0.0,
        test_at=asked_at,
    )


def delivered(stretch: Stretch, attempted: Attempted) -> None:
    """Write down how it went: go on behind it, try again later, or switch the webhook off and say so."""
    with transaction.atomic():
        store.lock(stretch.webhook, None)
        row = store.DeliveryRow(
            0, 0.0, stretch.first, stretch.last, stretch.events, attempted.status, attempted.took_s, attempted.error
        )
        if stretch.test_at is not None:
            # A test says how the receiver answers now, and changes nothing of what is owed to it.
            if store.end_test(stretch.webhook, stretch.test_at):
                store.log(stretch.webhook, row)
            return
        store.log(stretch.webhook, row)
        if attempted.error is None:
            store.confirm(stretch.webhook, cursor=stretch.cursor, sending_to=stretch.last)
            return
        verdict = decide_after_failure(
            failures=stretch.failures + 1,
            failing_for_s=stretch.failing_for_s,
            status=attempted.status,
            retry_after_s=attempted.retry_after_s,
            draw=random.random(),  # noqa: S311 - jitter
        )
        off = isinstance(verdict, SwitchOff)
        changed = store.fail(
            stretch.webhook,
            cursor=stretch.cursor,
            sending_to=stretch.last,
            standing=Standing.DISABLED if off else Standing.ACTIVE,
            after_s=0.0 if isinstance(verdict, SwitchOff) else verdict.after_s,
        )
        if changed and isinstance(verdict, SwitchOff):
            _switched_off(stretch, verdict.why)


def _switched_off(stretch: Stretch, why: str) -> None:
    owner = event_store.EVERYONE if stretch.tenant is None else stretch.tenant
    event_store.listen_no_longer(owner, seconds=RETURN_S)
    data = {"webhook": stretch.webhook, "url": stretch.url, "why": why, "cursor": stretch.cursor}
    announce(stretch.tenant, Alert.WEBHOOK_DISABLED, data)
    before, after = {"state": Standing.ACTIVE.value}, {"state": Standing.DISABLED.value, "why": why}
    record(SYSTEM, "webhook.disable", f"webhook:{stretch.webhook}", before=before, after=after)


def due_webhooks(rows_max: int) -> list[int]:
    """Webhooks that have something to post now."""
    return store.load_due(rows_max)


def forget_deliveries() -> int:
    """Remove old entries of the log; returns how many."""
    return store.forget_deliveries(keep_s=DELIVERIES_KEEP_S, rows_max=FORGET_MAX)
