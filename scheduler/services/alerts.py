"""Raises alerts and tells them, in the transaction of what they tell of: what is undone was never told.

Each is told once, as an event; webhooks deliver it, and who listens to events hears it. It must never lock a row that
dispatch or settlement waits for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scheduler.policy.alerts import Alert, crossed, message_of
from scheduler.policy.types import TenantId
from scheduler.services.events import announce
from scheduler.store import alerts as store
from scheduler.store.money import Booked, LockedBudget

TENANT_SCOPE: Final = "tenant"


def raise_crossed(booked: Iterable[tuple[Booked, int, TenantId]]) -> None:
    """Raise the alerts of budgets, each with what it was just charged and its tenant, that this took to a threshold."""
    _raise(
        store.Reached(budget.budget, tenant, part, budget.limit, budget.spent)
        for budget, spent, tenant in booked
        if budget.limit is not None
        for part in crossed(budget.spent - spent, budget.spent, budget.limit, budget.thresholds)
    )


def raise_passed(tenant: TenantId, budget: LockedBudget) -> None:
    """Raise the alerts of the thresholds that a budget stands at or beyond, after its limit was changed."""
    view = budget.view
    if view.limit is not None and view.spent > 0:
        limit = view.limit
        passed = crossed(-1, view.spent, limit, budget.thresholds)
        _raise(store.Reached(view.id, tenant, part, limit, view.spent) for part in passed)


def _raise(reached: Iterable[store.Reached]) -> None:
    found = list(reached)
    for crossing in store.raise_alerts(found) if found else ():
        # A run's owner is told of all its caps in one way, by who looks after runs.
        if crossing.scope == TENANT_SCOPE:
            announce(TenantId(crossing.tenant_id), Alert.BUDGET, message_of(crossing))
