"""What is said of a task that waits for money or for a worker that may take it: what is missing, what changes that."""

from __future__ import annotations

import pytest

from scheduler.policy.budget_words import TaskCost, lack_of_money
from scheduler.policy.explain import explain
from scheduler.policy.types import BudgetId, BudgetView
from tests.policy.test_explain import around, only, task

CENT = 10_000_000
NEW_YEAR = 1_798_761_600.0


def cost(*, limit: int | None, spent: int = 0, reserved: int = 0, ends_at: float | None = NEW_YEAR) -> TaskCost:
    """Of a task that needs four cents at least, in cents."""
    allowed = None if limit is None else limit * CENT
    view = BudgetView(BudgetId(1), allowed, spent * CENT, reserved * CENT, ends_at)
    return TaskCost(most=9 * CENT, least=4 * CENT, budget=view)


@pytest.mark.parametrize(
    ("has", "says"),
    [
        (
            cost(limit=10, spent=5, reserved=4),
            "has $0.01 left of $0.10: $0.04 are reserved by tasks that run, and may come back.",
        ),
        (
            cost(limit=10, spent=8),
            "has $0.02 left of $0.10: $0.08 are spent. The next period begins at 2027-01-01 00:00:00 UTC; until then",
        ),
        (
            cost(limit=10, spent=12, ends_at=None),
            "has $0.00 left of $0.10: $0.12 are spent. It goes on when somebody raises it.",
        ),
    ],
    ids=["reserved", "spent", "without a period"],
)
def test_it_says_what_is_left_and_what_has_to_happen(has: TaskCost, says: str) -> None:
    reason = only(explain(task(), around(cost=has)))
    assert reason.code == "tenant_budget"
    assert f"It costs at least $0.04, and the budget of acme {says}" in reason.text


@pytest.mark.parametrize("has", [cost(limit=None, spent=99), cost(limit=10, spent=6), cost(limit=10, reserved=6)])
def test_what_its_budget_lets_start_lacks_no_money(has: TaskCost) -> None:
    assert lack_of_money("acme", has) is None


def test_a_worker_that_may_take_it_is_named_by_what_it_would_have() -> None:
    reason = only(explain(task(), around(matching=False, labels=("gpu=h100", "zone=eu"))))
    assert reason.code == "no_matching_worker"
    assert "that takes this tenant's work with gpu=h100, zone=eu is connected" in reason.text
    assert "with" not in only(explain(task(), around(matching=False))).text
