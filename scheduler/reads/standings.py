"""How tenants stand now, in money and in work: what live pages of tenants are drawn from, read for many at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from scheduler.errors import NotFound
from scheduler.reads.money import BudgetDetail, budget_of
from scheduler.reads.tenants import TenantDetail, details_of
from scheduler.store import accounts
from scheduler.store.asking import Together
from scheduler.store.control import load_tenant_use, load_tenants


@dataclass(frozen=True, slots=True)
class TenantStanding:
    """A tenant's budget, and what of it runs and waits."""

    budget: BudgetDetail
    suspended: bool
    in_flight: int
    queued: int


def tenant_standings(slugs: Collection[str]) -> dict[str, TenantStanding]:
    """The tenants of these slugs that exist. Two statements, however many they are."""
    wanted, asking = sorted(slug for slug in slugs if "\x00" not in slug), Together()
    tenants = asking.add(load_tenants.question(wanted))
    spent = asking.add(accounts.load_budgets.question(slugs=wanted))
    if not wanted or not tenants.value:
        return {}
    rows = tenants.value
    uses = load_tenant_use([row.id for row in rows])
    budgets = {row.slug: budget_of(row) for row in spent.value}
    return {
        row.slug: TenantStanding(
            budgets[row.slug], row.status == "suspended", in_flight=uses[row.id].in_flight, queued=uses[row.id].queued
        )
        for row in rows
        if row.id in uses and row.slug in budgets
    }


def tenant_with_budget(slug: str) -> tuple[TenantDetail, BudgetDetail]:
    """A tenant and how its budget stands, of one moment. Raises NotFound."""
    asking = Together()
    tenants = asking.add(load_tenants.question([slug]))
    budgets = asking.add(accounts.load_budgets.question(slugs=[slug]))
    found = details_of(tenants.value) if "\x00" not in slug else []
    if not found or not budgets.value:
        raise NotFound(f"There is no tenant {slug!r}.", code="unknown_tenant")
    return found[0], budget_of(budgets.value[0])
