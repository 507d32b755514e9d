"""Arrivals and service times, learned from counts alone."""

import random
from bisect import bisect
from itertools import accumulate

import pytest

from scheduler.policy.load import Counted, Learned, learn
from scheduler.policy.types import PriorityClass


def counted(at: float, *, ready: float = 0, started: float = 0, running: float = 0, age_s: float = 0) -> Counted:
    """One class only: normal."""
    return Counted(at, (0, 0, ready, 0), (0, 0, started, 0), running, age_s)


def observe(*looks: Counted, before: Learned | None = None) -> Learned:
    learned = before or Learned()
    for look in looks:
        learned = learn(learned, look, interval_s=1.0)
    return learned


def test_a_first_look_only_sets_the_mark() -> None:
    learned = observe(counted(100.0, ready=50, started=1_000))
    assert sum(learned.arrivals_per_s) == 0.0
    assert learned.service_s(2.0) == 2.0


def test_what_waits_more_and_what_was_started_has_arrived() -> None:
    looks = [counted(float(t), ready=3 * t, started=2 * t) for t in range(120)]
    assert observe(*looks).arrivals_per_s[PriorityClass.NORMAL] == pytest.approx(5.0, rel=1e-3)


def test_a_cancelled_backlog_is_no_negative_arrival() -> None:
    learned = observe(counted(0.0, ready=10_000), counted(1.0, ready=0))
    assert sum(learned.arrivals_per_s) == 0.0


def test_slots_that_were_filled_right_after_a_look_teach_nothing_until_something_ends() -> None:
    empty = counted(0.0, ready=100)
    filled = counted(1.0, ready=96, started=4, running=4, age_s=3.9)
    still = counted(2.0, ready=96, started=4, running=4, age_s=7.9)
    assert observe(empty, filled, still).service_s(2.0) == 2.0


@pytest.mark.parametrize("later", [50.0, 100.0])
def test_a_clock_that_stands_or_goes_back_changes_no_average(later: float) -> None:
    before = observe(*(counted(float(t), ready=t, started=t) for t in range(101)))
    after = observe(counted(later, ready=500, started=900), before=before)
    assert after.arrivals_per_s == before.arrivals_per_s
    assert (after.busy_s, after.ended) == (before.busy_s, before.ended)
    assert after.counted is not None
    assert after.counted.at == later


def test_a_long_gap_counts_as_its_mean() -> None:
    before = observe(counted(0.0), counted(1.0, started=100))
    after = observe(counted(1001.0, started=2100), before=before)
    assert sum(after.arrivals_per_s) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(("per_s", "service_s", "every_s"), [(4.0, 0.8, 1.0), (50.0, 0.02, 1.0), (0.2, 20.0, 1.0)])
def test_service_time_is_learned_whatever_its_length(per_s: float, service_s: float, every_s: float) -> None:
    draw = random.Random(7)
    began = list(accumulate(draw.expovariate(per_s) for _ in range(int(400 * per_s))))
    learned = Learned()
    for look in range(1, 400):
        now = look * every_s
        first, last = bisect(began, now - service_s), bisect(began, now)
        age_s = sum(now - at for at in began[first:last])
        learned = learn(learned, counted(now, started=last, running=last - first, age_s=age_s), interval_s=1.0)
    assert learned.service_s(1.0) == pytest.approx(service_s, rel=0.35)


def test_silence_teaches_nothing() -> None:
    looks = [counted(float(t), started=10 * t, running=5, age_s=1.25) for t in range(200)]
    busy = observe(*looks)
    assert busy.service_s(1.0) == pytest.approx(0.5, rel=0.05)
    idle = observe(*(counted(200.0 + t, started=1990) for t in range(2000)), before=busy)
    assert idle.service_s(1.0) == pytest.approx(busy.service_s(1.0), rel=0.1)
    assert sum(idle.arrivals_per_s) < 1e-6
