"""Alerts of budgets: kept once for each threshold, with what raises them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scheduler.policy.alerts import Crossing
from scheduler.policy.books import AlertRow
from scheduler.policy.types import BudgetId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("alerts.sql")


class Reached(NamedTuple):
    """A budget has reached a part of its limit."""

    budget: BudgetId
    tenant: TenantId
    threshold: float
    limit: int
    spent: int


def raise_alerts(reached: Sequence[Reached]) -> list[Crossing]:
    """Keep these; those that are new, to be told."""
    params = {
        "budgets": queries.array(r.budget for r in reached),
        "tenants": queries.array(r.tenant for r in reached),
        "thresholds": queries.array(r.threshold for r in reached),
        "limits": queries.array(r.limit for r in reached),
        "spents": queries.array(r.spent for r in reached),
    }
    return [Crossing(*row) for row in queries.fetch(_SQL["raise_alerts"], params)]


def load_alerts(*, tenant: TenantId | None, before: int | None, rows_max: int) -> list[AlertRow]:
    """Alerts of a tenant (None: of all), newest first, older than the one of that id."""
    params = {"tenant": tenant, "before": before, "rows_max": rows_max}
    return [AlertRow(*row) for row in queries.fetch(_SQL["read_alerts"], params)]
