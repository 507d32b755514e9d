"""Tenants as the API shows them, to those who may see them."""

from __future__ import annotations

from scheduler.errors import NotFound
from scheduler.policy.types import TenantId
from scheduler.store.control import TenantRow, load_tenants

TenantDetail = TenantRow


def list_tenants(only: TenantId | None) -> list[TenantDetail]:
    """Tenants by slug; `only` limits a caller to its own."""
    return [row for row in load_tenants() if only is None or row.id == only]


def tenant_detail(slug: str, only: TenantId | None) -> TenantDetail:
    """The tenant of that slug. Raises NotFound, also for one that the caller may not see."""
    found = [row for row in load_tenants([slug]) if only is None or row.id == only] if "\x00" not in slug else []
    if not found:
        raise NotFound(f"There is no tenant {slug!r}.", code="unknown_tenant")
    return found[0]
