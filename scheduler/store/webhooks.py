"""Webhooks and what was delivered to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import TenantId
from scheduler.policy.webhooks import Standing
from scheduler.store import queries

_SQL: Final = queries.load("webhooks.sql")


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook, of one tenant or of all (None); times are Unix seconds. `now` is when it was read."""

    id: int
    tenant: TenantId | None
    tenant_slug: str | None
    url: str
    events: tuple[str, ...]
    salt: bytes
    standing: Standing
    cursor: int
    sending_to: int | None
    failures: int
    failing_since: float | None
    due_at: float
    version: int
    test_at: float | None
    test_due_at: float | None
    now: float


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One try; `status` None: no answer came."""

    id: int
    at: float
    first: int
    last: int
    events: int
    status: int | None
    took_s: float
    error: str | None


def add(tenant: TenantId | None, *, url: str, events: tuple[str, ...], salt: bytes) -> int:
    """Declare one; it begins with what happens from now on."""
    row = queries.fetch_one(
        _SQL["add_webhook"], {"tenant": tenant, "url": url, "events": queries.text_array(events), "salt": salt}
    )
    return 0 if row is None else int(row[0])


def count(tenant: TenantId | None) -> int:
    """How many a tenant has, or how many are of all tenants."""
    row = queries.fetch_one(_SQL["count_webhooks"], {"tenant": tenant})
    return 0 if row is None else int(row[0])


def load(tenant: TenantId | None, *, after: int, rows_max: int) -> list[WebhookRow]:
    """By id; of all tenants for None."""
    rows = queries.fetch(_SQL["read_webhooks"], {"tenant": tenant, "after": after, "rows_max": rows_max})
    return [_row(row) for row in rows]


def lock(webhook: int, tenant: TenantId | None) -> WebhookRow | None:
    """Lock one; None when there is none, or it is another tenant's."""
    row = queries.fetch_one(_SQL["lock_webhook"], {"webhook": webhook, "tenant": tenant})
    return None if row is None else _row(row)


def edit(webhook: int, *, version: int, url: str, events: tuple[str, ...], standing: Standing) -> bool:
    """Change it; False when it was changed meanwhile. What failed before is forgotten."""
    params = {"webhook": webhook, "version": version, "url": url, "events": queries.text_array(events)}
    return queries.run(_SQL["edit_webhook"], {**params, "standing": standing.value}) == 1


def replace_salt(webhook: int, salt: bytes) -> None:
    """Give it another secret."""
    queries.run(_SQL["replace_salt"], {"webhook": webhook, "salt": salt})


def rewind(webhook: int, after: int) -> None:
    """Deliver what is beyond this place, again if need be."""
    queries.run(_SQL["rewind_webhook"], {"webhook": webhook, "after": after})


def remove(webhook: int) -> None:
    """Remove it with the log of its deliveries."""
    queries.run(_SQL["remove_webhook"], {"webhook": webhook})


def load_due(rows_max: int) -> list[int]:
    """Webhooks that have something to deliver now."""
    rows = queries.fetch(_SQL["due_webhooks"], {"rows_max": rows_max})
    return list(dict.fromkeys(int(row[0]) for row in rows))


def ask_test(webhook: int) -> bool:
    """Have a test posted; False while another is on its way."""
    return queries.run(_SQL["ask_test"], {"webhook": webhook}) == 1


def claim_test(webhook: int, *, seconds: float) -> None:
    """Keep others from posting the test for so long."""
    queries.run(_SQL["claim_test"], {"webhook": webhook, "seconds": seconds})


def end_test(webhook: int, test_at: float) -> bool:
    """The test that was asked for then has its result; False when it had one before."""
    return queries.run(_SQL["end_test"], {"webhook": webhook, "test_at": test_at}) == 1


def claim(webhook: int, *, sending_to: int, seconds: float) -> None:
    """Keep others from posting for so long, and remember what is posted."""
    queries.run(_SQL["claim_webhook"], {"webhook": webhook, "sending_to": sending_to, "seconds": seconds})


def pass_over(webhook: int, cursor: int) -> None:
    """Go on behind events that were not asked for."""
    queries.run(_SQL["pass_over"], {"webhook": webhook, "cursor": cursor})


def confirm(webhook: int, *, cursor: int, sending_to: int) -> bool:
    """It arrived; False when the webhook was changed meanwhile."""
    params = {"webhook": webhook, "cursor": cursor, "sending_to": sending_to}
    return queries.run(_SQL["confirm_delivery"], params) == 1


def fail(webhook: int, *, cursor: int, sending_to: int, standing: Standing, after_s: float) -> bool:
    """It did not arrive; False when the webhook was changed meanwhile."""
    params = {"webhook": webhook, "cursor": cursor, "sending_to": sending_to, "after_s": after_s}
    return queries.run(_SQL["fail_delivery"], {**params, "standing": standing.value}) == 1


def log(webhook: int, delivery: DeliveryRow) -> None:
    """Write a try down; `id` and `at` are the database's."""
    d = delivery
    params = {"first": d.first, "last": d.last, "events": d.events, "status": d.status, "took_s": d.took_s}
    queries.run(_SQL["add_delivery"], {**params, "webhook": webhook, "error": d.error})


def load_deliveries(webhook: int, *, before: int, rows_max: int) -> list[DeliveryRow]:
    """The newest first."""
    rows = queries.fetch(_SQL["read_deliveries"], {"webhook": webhook, "before": before, "rows_max": rows_max})
    return [DeliveryRow(*row) for row in rows]


def forget_deliveries(*, keep_s: float, rows_max: int) -> int:
    """Remove some that are too old; returns how many."""
    return queries.run(_SQL["forget_deliveries"], {"keep_s": keep_s, "rows_max": rows_max})


def _row(row: queries.Row) -> WebhookRow:
    webhook, tenant, slug, url, events, salt, standing, *rest = row
    owner = None if tenant is None else TenantId(tenant)
    return WebhookRow(webhook, owner, slug, url, tuple(events), bytes(salt), Standing(standing), *rest)
