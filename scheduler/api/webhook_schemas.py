"""What is said about webhooks, and what they are like."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Reason, Text, Version
from scheduler.policy.webhooks import EVENT_NAMES
from scheduler.reads.tasks import ID_MAX
from scheduler.reads.webhooks import DeliveryRow, WebhookRow

Events = Annotated[list[Text], Field(max_length=50, description=f"Of: {', '.join(EVENT_NAMES)}")]


class WebhookIn(In):
    """A webhook to declare."""

    url: Text
    events: Events
    tenant: Text | None = None
    every_tenant: bool = Field(
        default=False, strict=True, description="Events of all tenants, and alerts of limits, which are nobody's own"
    )
    reason: Reason = ""


class WebhookEditIn(In):
    """What to change; what is left out stays."""

    version: Version
    url: Text | None = None
    events: Events | None = None
    state: Literal["active", "paused"] | None = None
    reason: Reason = ""


class WebhookReplayIn(In):
    """From where to deliver again."""

    after: Annotated[int, Field(strict=True, ge=0, le=ID_MAX, description="The `seq` behind which it begins")]
    reason: Reason = ""


class WebhookOut(Out):
    """A webhook. `cursor`: the `seq` up to which everything arrived. Its secret is shown only when it is made."""

    id: int
    tenant: str | None = Field(description="Null: of every tenant")
    url: str
    events: list[str]
    state: Literal["active", "paused", "disabled"]
    cursor: int
    failures: int = Field(description="Tries in a row that did not arrive")
    failing_since: datetime | None
    next_try_at: datetime | None = Field(description="When a stretch that did not arrive is posted again")
    test_at: datetime | None = Field(description="When a test was asked for that has no result yet")
    version: int


class NewWebhookOut(WebhookOut):
    """A webhook with its secret, shown this once."""

    secret: str | None = Field(
        description="Deliveries are signed with it (Standard Webhooks); null in a repeated answer"
    )


class WebhookPageOut(Out):
    """A page of webhooks, oldest first."""

    webhooks: list[WebhookOut]
    next_cursor: int | None = Field(description="Pass it as `cursor` for the next page; null at the end")


class DeliveryOut(Out):
    """One try to deliver the events from `first` to `last`; both are 0 for a test."""

    id: int
    at: datetime
    first: int
    last: int
    events: int
    status: int | None = Field(description="HTTP status; null when no answer came")
    took_s: float
    error: str | None = Field(description="Null when it arrived")


class DeliveriesOut(Out):
    """A page of tries, newest first."""

    deliveries: list[DeliveryOut]
    next_cursor: int | None = Field(description="Pass it as `cursor` for the next page; null at the end")


def present_webhook(row: WebhookRow) -> WebhookOut:
    """The webhook."""
    return WebhookOut(
        id=row.id,
        tenant=row.tenant_slug,
        url=row.url,
        events=list(row.events),
        state=row.standing.value,
        cursor=row.cursor,
        failures=row.failures,
        failing_since=at(row.failing_since),
        next_try_at=at(row.due_at) if row.failures else None,
        test_at=at(row.test_at),
        version=row.version,
    )


def present_new(row: WebhookRow, secret: str) -> NewWebhookOut:
    """The webhook with its secret."""
    return NewWebhookOut(**present_webhook(row).model_dump(), secret=secret)


def present_delivery(row: DeliveryRow) -> DeliveryOut:
    """One try."""
    return DeliveryOut(
        id=row.id,
        at=moment(row.at),
        first=row.first,
        last=row.last,
        events=row.events,
        status=row.status,
        took_s=row.took_s,
        error=row.error,
    )
