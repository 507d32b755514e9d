"""Top-ups of budgets: what each of them adds, and what is in force beside a budget's limit."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.policy.books import TopUpRow
from scheduler.policy.types import BudgetId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("top_ups.sql")


class InForce(NamedTuple):
    """How many top-ups a budget has now, and what they add."""

    number: int
    nano: int


def add_top_up(
    budget: BudgetId, amount: int, *, until: float | None, for_s: float | None, actor: str, reason: str
) -> TopUpRow | None:
    """Add one until then (Unix seconds) or for so long, at most to the period's end; None when that is over already."""
    params = {
        "budget": budget,
        "amount": amount,
        "until": until,
        "for_s": for_s,
        "actor": actor,
        "reason": reason,
    }
    row = queries.fetch_one(_SQL["add_top_up"], params)
    return None if row is None else TopUpRow(*row)


def end_top_up(top_up: int, tenant: TenantId) -> BudgetId | None:
    """End one now; the budget it was of, or None when it is not in force."""
    row = queries.fetch_one(_SQL["end_top_up"], {"top_up": top_up, "tenant": tenant})
    return None if row is None else BudgetId(row[0])


def keep_top_ups(budget: BudgetId) -> InForce:
    """Write what is in force beside the limit of a budget, which is locked."""
    row = queries.fetch_one(_SQL["keep_top_ups"], {"budget": budget})
    return InForce(0, 0) if row is None else InForce(*row)


def load_top_ups(
    tenant: TenantId, *, before: int | None = None, top_up: int | None = None, rows_max: int
) -> list[TopUpRow]:
    """Top-ups of a tenant, newest first, older than the one of that id; or that one alone."""
    params = {"tenant": tenant, "before": before, "top_up": top_up, "rows_max": rows_max}
    return [TopUpRow(*row) for row in queries.fetch(_SQL["read_top_ups"], params)]
