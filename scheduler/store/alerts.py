"""Alerts of budgets: raised with what raises them, told later to who listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from scheduler.policy.alerts import DueAlert
from scheduler.policy.books import AlertRow, TargetRow
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


def raise_alerts(reached: Sequence[Reached]) -> int:
    """Keep these for who listens; how many are new."""
    params = {
        "budgets": queries.array(r.budget for r in reached),
        "tenants": queries.array(r.tenant for r in reached),
        "thresholds": queries.array(r.threshold for r in reached),
        "limits": queries.array(r.limit for r in reached),
        "spents": queries.array(r.spent for r in reached),
    }
    return queries.run(_SQL["raise_alerts"], params)


def take_due(alerts_max: int, *, first_s: float) -> list[DueAlert]:
    """Take alerts that are due; each is due again after `first_s`, doubled with every try, unless its telling ends."""
    rows = queries.fetch(_SQL["take_due"], {"alerts_max": alerts_max, "first_s": first_s})
    return [DueAlert(*row)._replace(targets=_targets(row[-1])) for row in rows]


def _targets(text: str | None) -> tuple[tuple[str, str], ...]:
    return () if text is None else tuple((url, secret) for url, secret in orjson.loads(text))


def end_telling(alert: int, *, fault: str = "") -> None:
    """It was told, or (with a fault) given up."""
    queries.run(_SQL["end_telling"], {"alert": alert, "fault": fault[:300]})


def note_fault(alert: int, fault: str) -> None:
    """Keep why it could not be told yet."""
    queries.run(_SQL["note_fault"], {"alert": alert, "fault": fault[:300]})


def load_alerts(*, tenant: TenantId | None, before: int | None, rows_max: int) -> list[AlertRow]:
    """Alerts of a tenant (None: of all), newest first, older than the one of that id."""
    params = {"tenant": tenant, "before": before, "rows_max": rows_max}
    return [AlertRow(*row) for row in queries.fetch(_SQL["read_alerts"], params)]


def load_targets() -> list[TargetRow]:
    """All targets."""
    return [TargetRow(*row) for row in queries.fetch(_SQL["read_targets"])]


def add_target(tenant: TenantId | None, url: str, secret: str) -> int | None:
    """Add one; None when it is there already."""
    row = queries.fetch_one(_SQL["add_target"], {"tenant": tenant, "url": url, "secret": secret})
    return None if row is None else int(row[0])


def remove_target(target: int) -> tuple[str, str | None] | None:
    """Remove one; its URL and tenant, or None when there is no such target."""
    row = queries.fetch_one(_SQL["remove_target"], {"target": target})
    return None if row is None else (row[0], row[1])
