"""Virtual counters and class credits, one step at a time."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.fairness import CREDIT_MAX, WEIGHT_MIN, accrue, charged, is_owed, lifted, stayed
from scheduler.policy.types import FairCounter, PriorityClass
from tests.policy.stage import HIGH, LOW, NORMAL

SHARES = (0.0, 0.0, 0.10, 0.05)


def test_a_tenant_stayed_if_something_waits_since_before_its_last_start() -> None:
    counter = FairCounter(5.0, last_start_at=100.0)
    assert stayed(counter, oldest_ready_at=100.0) is counter
    assert stayed(counter, oldest_ready_at=100.1) is None
    assert stayed(None, oldest_ready_at=0.0) is None


def test_a_tenant_that_was_idle_banked_nothing_and_is_not_forgiven_what_it_used() -> None:
    assert lifted(FairCounter(5.0, 0.0), lowest_active=inf, clock=40.0) == 40.0
    assert lifted(FairCounter(50.0, 0.0), lowest_active=inf, clock=40.0) == 50.0
    assert lifted(None, lowest_active=inf, clock=40.0) == 40.0


def test_a_newcomer_goes_just_before_the_lowest_of_its_rivals() -> None:
    counter = lifted(None, lowest_active=7.0, clock=40.0)
    assert 6.999 < counter < 7.0


@given(cost=st.floats(1e-3, 1e3), weight=st.floats(1e-3, 1e3))
def test_a_start_costs_its_cost_by_weight(cost: float, weight: float) -> None:
    assert charged(0.0, cost=cost, weight=weight) == cost / weight


def test_a_weight_of_zero_is_a_price_not_a_crash() -> None:
    assert charged(0.0, cost=1.0, weight=0.0) == 1.0 / WEIGHT_MIN


@given(starts=st.lists(st.sampled_from([HIGH, NORMAL, LOW]), max_size=200))
def test_credits_stay_in_bounds(starts: list[PriorityClass]) -> None:
    held: dict[PriorityClass, float] = {}
    for started in starts:
        accrue(held, started=started, startable=[HIGH, NORMAL, LOW], shares=SHARES)
        assert all(0.0 <= credit <= CREDIT_MAX for credit in held.values())
        assert HIGH not in held


def test_a_class_is_owed_a_start_after_as_many_as_its_share_says() -> None:
    held: dict[PriorityClass, float] = {}
    for _ in range(19):
        accrue(held, started=HIGH, startable=[HIGH, LOW], shares=SHARES)
    assert not is_owed(held[LOW])
    accrue(held, started=HIGH, startable=[HIGH, LOW], shares=SHARES)
    assert is_owed(held[LOW])


def test_a_class_that_is_blocked_gains_nothing_and_keeps_what_it_has() -> None:
    held = {LOW: 0.5}
    accrue(held, started=HIGH, startable=[HIGH], shares=SHARES)
    assert held == {LOW: 0.5}
