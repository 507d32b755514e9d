"""Builders of budgets and of lines in the ledger, as settlements would have left them."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from scheduler.models import Budget, BurnMark, LedgerEntry
from scheduler.policy.types import PoolId, TenantId

USD = 1_000_000_000
_leases = count(1)


def make_budget(tenant: TenantId, *, limit: int | None, spent: int = 0, reserved: int = 0, **fields: Any) -> Budget:
    """The budget of a period that began ten days ago and ends in twenty."""
    now = timezone.now()
    period = {"period_start": now - timedelta(days=10), "period_end": now + timedelta(days=20)}
    return Budget.objects.create(
        scope="tenant", scope_id=tenant, limit_nano=limit, spent_nano=spent, reserved_nano=reserved, **period | fields
    )


def make_burn(budget: Budget, *, per_hour: int) -> None:
    """Let a budget have been burning like this for ten minutes."""
    at = timezone.now() - timedelta(minutes=10)
    old = budget.spent_nano - per_hour // 6
    BurnMark.objects.create(budget=budget.pk, old_nano=old, old_at=at, mid_nano=old, mid_at=at)


def make_entry(tenant: TenantId, pool: PoolId, cost: int, **fields: Any) -> None:
    """A line of the ledger: a call that succeeded."""
    values: dict[str, Any] = {
        "lease_id": next(_leases),
        "line": 0,
        "at": timezone.now(),
        "task_id": 1,
        "budget_ids": [],
        "kind": "summary",
        "model": "m-1",
        "priority": 2,
        "tenant_charge_nano": cost,
        "usage_source": "reported",
        "price_source": "operator",
        "outcome": "success",
    } | fields
    LedgerEntry.objects.create(tenant_id=tenant, pool_id=pool, provider_cost_nano=cost, **values)
