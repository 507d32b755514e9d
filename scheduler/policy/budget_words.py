"""Decides how to say that a task waits for money: what it needs, what its budget has, and when that changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduler.policy.budget import BudgetVerdict, Purse
from scheduler.policy.money import format_usd
from scheduler.policy.types import BudgetView


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What the task may cost at most and needs at least, and the budget that it is charged to."""

    most: int
    least: int
    budget: BudgetView


def lack_of_money(tenant: str, cost: TaskCost) -> tuple[str, Mapping[str, object]] | None:
    """The sentence, and the figures behind it (amounts as text in dollars); None when its budget lets it start."""
    budget = cost.budget
    verdict = Purse(budget).verdict(cost.least)
    if verdict is BudgetVerdict.OPEN:
        return None
    limit, spent, reserved = (format_usd(n) for n in (budget.limit or 0, budget.spent, budget.reserved))
    left = format_usd(max(0, budget.headroom or 0))
    text = f"It costs at least ${format_usd(cost.least)}, and the budget of {tenant} has ${left} left of ${limit}"
    if verdict is BudgetVerdict.RESERVED:
        text += f": ${reserved} are reserved by tasks that run, and may come back."
    elif budget.ends_at is None:
        text += f": ${spent} are spent. It goes on when somebody raises it."
    else:
        at = datetime.fromtimestamp(budget.ends_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        text += f": ${spent} are spent. The next period begins at {at}; until then somebody has to raise it."
    detail: dict[str, object] = {
        "needed_usd": format_usd(cost.least),
        "limit_usd": limit,
        "spent_usd": spent,
        "reserved_usd": reserved,
        "period_end_at": budget.ends_at,
    }
    return text, detail
