"""How a budget stands and where it goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.pace import BudgetState, projected, runs_out_at, state_of

HOUR_S = 3_600.0
nano = st.integers(0, 10**15)


@pytest.mark.parametrize(
    ("limit", "spent", "reserved", "alert_at", "state"),
    [
        (None, 10, 10, (0.8,), BudgetState.UNLIMITED),
        (100, 79, 20, (0.8, 1.0), BudgetState.OK),
        (100, 80, 19, (0.8, 1.0), BudgetState.WARNED),
        (100, 99, 0, (), BudgetState.OK),
        (100, 79, 21, (0.8,), BudgetState.THROTTLED),
        (100, 100, 0, (0.8,), BudgetState.BLOCKED),
        (0, 0, 0, (0.8,), BudgetState.BLOCKED),
    ],
)
def test_a_budget_stands_in_one_word(
    limit: int | None, spent: int, reserved: int, alert_at: tuple[float, ...], state: BudgetState
) -> None:
    assert state_of(limit, spent=spent, reserved=reserved, alert_at=alert_at) is state


def test_a_period_goes_on_as_it_was() -> None:
    assert projected(spent=100, reserved=7, starts_at=0.0, ends_at=100.0, now=25.0) == 407
    assert projected(spent=100, reserved=0, starts_at=0.0, ends_at=100.0, now=0.0) == 10_100
    assert projected(spent=100, reserved=0, starts_at=0.0, ends_at=100.0, now=200.0) == 100


def test_money_runs_out_when_what_is_left_is_burnt() -> None:
    def out(limit: int | None, burn: float) -> float | None:
        return runs_out_at(limit, spent=40, reserved=10, burn=burn, ends_at=100 * HOUR_S, now=2 * HOUR_S)

    assert out(100, 25.0) == 4 * HOUR_S
    assert out(100, 0.0) is None
    assert out(100, 0.5) is None  # after the period
    assert out(None, 25.0) is None
    assert out(50, 0.0) == 2 * HOUR_S  # nothing is left


@given(limit=nano, spent=nano, reserved=nano, burn=st.floats(0, 1e15), left_s=st.floats(0, 1e7))
def test_a_budget_that_runs_out_does_so_within_its_period(
    limit: int, spent: int, reserved: int, burn: float, left_s: float
) -> None:
    at = runs_out_at(limit, spent=spent, reserved=reserved, burn=burn, ends_at=1e9 + left_s, now=1e9)
    assert at is None or 1e9 <= at <= 1e9 + left_s
    if spent + reserved >= limit:
        assert at == 1e9
