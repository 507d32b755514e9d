"""What is said of how a pool did."""

from __future__ import annotations

from math import isnan

import pytest

from scheduler.policy.figures import AttemptFigures, Spread, adherence, busy_s, efficiency, quantile, spread
from scheduler.policy.types import PriorityClass

HIGH, LOW = PriorityClass.HIGH, PriorityClass.LOW


def attempt(
    priority: PriorityClass = HIGH, *, ready: float = 0.0, starts: float = 0.0, ends: float = 1.0
) -> AttemptFigures:
    return AttemptFigures(priority, 1, ready, starts, ends, succeeded=True)


def test_durations_are_told_by_mean_and_quantiles() -> None:
    assert spread([]) == Spread()
    assert spread([1.0]) == Spread(1.0, 1.0, 1.0, 1.0)
    assert spread([float(n) for n in range(100)]) == Spread(49.5, 49.0, 89.0, 98.0)


def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0], 0.95) == 1.0
    assert isnan(quantile([], 0.5))
    for count in (1, 7, 10, 100):
        values = [float(n) for n in range(1, count + 1)]
        for percent in range(101):
            found = quantile(values, percent / 100)
            assert 100 * sum(value <= found for value in values) >= percent * count
            assert 100 * sum(value < found for value in values) <= percent * count


def test_a_start_that_passed_a_better_one_counts_against_the_order() -> None:
    assert adherence([]) is None
    assert adherence([attempt(HIGH, starts=1.0), attempt(LOW, starts=2.0)]) == 1.0
    assert adherence([attempt(HIGH, starts=2.0), attempt(LOW, starts=1.0)]) == 0.5
    # One that was not ready yet was not passed.
    assert adherence([attempt(HIGH, ready=1.5, starts=2.0), attempt(LOW, starts=1.0)]) == 1.0


def test_slot_time_counts_while_anything_was_there_to_do() -> None:
    assert efficiency([], slots=1, since=0.0) is None
    assert efficiency([attempt()], slots=0, since=0.0) is None
    assert efficiency([attempt(ends=0.0)], slots=1, since=0.0) is None
    assert efficiency([attempt(ready=1.0, starts=1.0, ends=1.0)], slots=1, since=0.0) is None
    assert efficiency([attempt(ends=1.0), attempt(starts=1.0, ends=2.0)], slots=2, since=0.0) == 0.5
    # A rest in which nothing was ready is nobody's fault.
    late = attempt(ready=10.0, starts=10.0, ends=11.0)
    assert efficiency([attempt(), late], slots=1, since=0.0) == 1.0


def test_only_time_since_then_is_counted() -> None:
    assert busy_s([attempt(ends=5.0)], since=2.0) == pytest.approx(3.0)
    assert busy_s([attempt(ends=1.0)], since=2.0) == 0.0
