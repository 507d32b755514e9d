"""How tenants stand now, in money and in work: what live pages of tenants are drawn from, read for many at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from scheduler.reads.money import BudgetDetail, budget_of
from scheduler.store import accounts
from scheduler.store.control import load_tenant_use, load_tenants


@dataclass(frozen=True, slots=True)
class TenantStanding:
    """A tenant's budget, and what of it runs and waits."""

    budget: BudgetDetail
    suspended: bool
    in_flight: int
    queued: int


def tenant_standings(slugs: Collection[str]) -> dict[str, TenantStanding]:
    """The tenants of these slugs that exist. Three statements, however many they are."""
    wanted = sorted(slug for slug in slugs if "\x00" not in slug)
    rows = load_tenants(wanted) if wanted else []
    if not rows:
        return {}
    uses = load_tenant_use([row.id for row in rows])
    budgets = {row.slug: budget_of(row) for row in accounts.load_budgets(slugs=[row.slug for row in rows])}
    return {
        row.slug: TenantStanding(
            budgets[row.slug], row.status == "suspended", in_flight=uses[row.id].in_flight, queued=uses[row.id].queued
        )
        for row in rows
        if row.id in uses and row.slug in budgets
    }
