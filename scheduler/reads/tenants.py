"""Tenants as the API shows them, to those who may see them, with what they use of their limits now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.declarations import QuotaSettings
from scheduler.policy.quotas import Quota
from scheduler.policy.types import TenantId, TenantView
from scheduler.store.control import TenantRow, TenantUse, load_tenant_use, load_tenants


@dataclass(frozen=True, slots=True)
class TenantDetail:
    """A tenant now. `start_level` is how many starts its rate allows at once, None without a rate."""

    id: TenantId
    slug: str
    name: str
    weight: float
    status: str
    time_zone: str
    version: int
    quota: QuotaSettings
    monthly_nano: int | None
    alert_at: tuple[float, ...]
    in_flight: int
    queued: int
    start_level: float | None


def list_tenants(only: TenantId | None) -> list[TenantDetail]:
    """Tenants by slug; `only` limits a caller to its own."""
    return details_of([row for row in load_tenants() if only is None or row.id == only])


def tenant_detail(slug: str, only: TenantId | None) -> TenantDetail:
    """The tenant of that slug. Raises NotFound, also for one that the caller may not see."""
    found = [row for row in load_tenants([slug]) if only is None or row.id == only] if "\x00" not in slug else []
    if not found:
        raise NotFound(f"There is no tenant {slug!r}.", code="unknown_tenant")
    return details_of(found)[0]


def tenant_to_show(slug: str | None, only: TenantId | None = None) -> TenantId | None:
    """The narrower of what the caller may see (None: all tenants) and what it asked for (nothing: all it may see).

    Raises Refused for a tenant that does not exist or that the caller may not see.
    """
    if not slug:
        return only
    found = load_tenants([slug]) if "\x00" not in slug else []
    if not found or (only is not None and found[0].id != only):
        detail = f"There is no tenant {slug!r}."
        raise Refused(detail, code="unknown_tenant", errors=(FieldError(("tenant",), detail),))
    return found[0].id


def details_of(rows: Sequence[TenantRow]) -> list[TenantDetail]:
    """These tenants with what they use now."""
    uses = load_tenant_use([row.id for row in rows]) if rows else {}
    return [_detail(row, uses[row.id]) for row in rows if row.id in uses]


def _detail(row: TenantRow, use: TenantUse) -> TenantDetail:
    return TenantDetail(
        id=row.id,
        slug=row.slug,
        name=row.name,
        weight=row.weight,
        status=row.status,
        time_zone=row.time_zone,
        version=row.version,
        quota=row.quota,
        monthly_nano=row.monthly_nano,
        alert_at=row.alert_at,
        in_flight=use.in_flight,
        queued=use.queued,
        start_level=None if row.quota.start_rate is None else Quota(_in_use(row, use), use.now).level,
    )


def limits_in_use(row: TenantRow, use: TenantUse) -> TenantView | None:
    """The tenant's own limits and what it uses of them, as the planner sees it; None when it has none."""
    view = TenantView(row.id, start_rate=row.quota.start_rate, max_in_flight=row.quota.max_in_flight)
    return _in_use(row, use) if view.limited else None


def _in_use(row: TenantRow, use: TenantUse) -> TenantView:
    """A bucket that was never drawn on is full."""
    burst = row.quota.start_burst or 1.0
    return TenantView(
        row.id,
        start_rate=row.quota.start_rate,
        start_burst=burst,
        start_level=burst if use.level is None else use.level,
        start_level_at=use.level_at or 0.0,
        max_in_flight=row.quota.max_in_flight,
        in_flight=use.in_flight,
    )
