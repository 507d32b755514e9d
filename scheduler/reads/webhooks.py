"""Webhooks as their owners see them, and the log of their deliveries."""

from __future__ import annotations

from typing import Final

from scheduler.errors import NotFound
from scheduler.policy.types import TenantId
from scheduler.store import webhooks as store
from scheduler.store.webhooks import DeliveryRow, WebhookRow

__all__ = ["DeliveryRow", "WebhookRow", "deliveries_of", "find_webhook", "list_webhooks"]

ID_MAX: Final = 2**63 - 1


def list_webhooks(tenant: TenantId | None, *, after: int, rows_max: int) -> list[WebhookRow]:
    """Of a tenant (None: of anyone), oldest first."""
    return store.load(tenant, after=after, rows_max=rows_max)


def find_webhook(webhook: int, tenant: TenantId | None) -> WebhookRow:
    """One. Raises NotFound, also for another tenant's."""
    rows = store.load(tenant, after=webhook - 1, rows_max=1) if 0 < webhook <= ID_MAX else []
    if not rows or rows[0].id != webhook:
        raise NotFound(f"There is no webhook {webhook}.", code="unknown_webhook")
    return rows[0]


def deliveries_of(webhook: int, tenant: TenantId | None, *, before: int | None, rows_max: int) -> list[DeliveryRow]:
    """The tries to deliver, newest first. Raises NotFound."""
    find_webhook(webhook, tenant)
    return store.load_deliveries(webhook, before=ID_MAX if before is None else before, rows_max=rows_max)
