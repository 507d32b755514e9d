"""Begins the periods of tenants' budgets, and lets operators set and top up what may be spent in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.policy.periods import period_at
from scheduler.policy.types import TenantId, TenantView
from scheduler.store import money as store


def open_periods(tenants: Sequence[TenantView], now: float) -> dict[TenantId, TenantView]:
    """These tenants with the budget of the period that `now` is in, which begins here.

    Part of the transaction that needs it. One whose period somebody else began at this moment is missing.
    """
    if not tenants:
        return {}
    views = {view.id: view for view in tenants}
    periods = [
        store.NewPeriod(each.tenant, *period_at(now, each.time_zone, after=each.after), each.monthly_nano)
        for each in store.load_openings(list(views))
    ]
    opened = store.open_budgets(periods)
    return {tenant: replace(views[tenant], budget=budget) for tenant, budget in opened.items()}
