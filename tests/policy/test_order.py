"""The score: classes, aging, and deadlines that rise smoothly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.order import DEFAULT_ORDER, score, urgency
from scheduler.policy.types import PriorityClass
from tests.policy.build import task
from tests.policy.stage import CRITICAL, HIGH, LOW, NORMAL

seconds = st.floats(-1e5, 1e5)
windows = st.floats(5.0, 1e4)
classes = st.sampled_from(PriorityClass)


@pytest.mark.parametrize(("priority", "points"), [(CRITICAL, 10_000), (HIGH, 1_000), (NORMAL, 100), (LOW, 10)])
def test_a_fresh_task_has_the_points_of_its_class(priority: PriorityClass, points: float) -> None:
    assert score(task(1, ready_at=5.0), priority, now=5.0) == points
    assert score(task(1, ready_at=9.0), priority, now=5.0) == points, "a ready time ahead of now is no wait"


def test_aging_is_two_points_a_second_up_to_its_cap() -> None:
    assert score(task(1), LOW, now=45.0) == 100.0
    assert score(task(1), LOW, now=400.0) == score(task(1), LOW, now=1e9) == 810.0


def test_old_low_work_passes_fresh_normal_work_but_never_high_or_critical() -> None:
    assert score(task(1), LOW, now=46.0) > score(task(2, ready_at=46.0), NORMAL, now=46.0)
    assert score(task(1), LOW, now=1e9) < score(task(2, ready_at=1e9), HIGH, now=1e9)
    assert score(task(1), HIGH, now=1e9) < score(task(2, ready_at=1e9), CRITICAL, now=1e9)


def test_urgent_low_work_passes_unhurried_high_work_but_never_unhurried_critical_work() -> None:
    urgent = score(task(1, latest_start=0.0), LOW, now=0.0)
    assert urgent > score(task(2, ready_at=-1e9), HIGH, now=0.0)
    overdue = score(task(1, ready_at=-1e9, latest_start=-1e9), LOW, now=0.0)
    assert overdue < score(task(2), CRITICAL, now=0.0)


@given(slack=seconds, passed=st.floats(0.0, 1e4), window=windows)
def test_urgency_never_falls_as_time_passes_and_stays_in_bounds(slack: float, passed: float, window: float) -> None:
    before, after = urgency(slack, window), urgency(slack - passed, window)
    assert 0.0 <= before <= after <= DEFAULT_ORDER.urgency_max + DEFAULT_ORDER.overdue_cap


@given(window=windows)
def test_urgency_is_continuous_where_its_pieces_meet(window: float) -> None:
    assert urgency(window, window) == 0.0
    assert urgency(window - 1e-6, window) < 0.01
    assert urgency(0.0, window) == 5_000.0
    assert abs(urgency(-1e-6, window) - urgency(1e-6, window)) < 0.01


@given(ready_at=seconds, now=seconds, later_s=st.floats(0.0, 1e5), priority=classes, start=st.none() | seconds)
def test_no_task_loses_points_by_waiting(
    ready_at: float, now: float, later_s: float, priority: PriorityClass, start: float | None
) -> None:
    view = task(1, ready_at=ready_at, latest_start=start)
    assert score(view, priority, now=now) <= score(view, priority, now=now + later_s)


def test_the_window_widens_with_the_expected_duration() -> None:
    short, long = task(1, latest_start=30.0, expected_s=1.0), task(2, latest_start=30.0, expected_s=60.0)
    assert score(short, LOW, now=0.0) == 10.0
    assert score(long, LOW, now=0.0) == 10.0 + 2_500.0
