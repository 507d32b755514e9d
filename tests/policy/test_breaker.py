"""The breaker opens when half of at least ten calls fail, lets one probe through, and always closes again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.breaker import (
    CALLS_MIN,
    OPEN_MAX_S,
    OPEN_MIN_S,
    WINDOW_MIN_S,
    Breaker,
    BreakerState,
    Call,
    after_calls,
    as_new,
    state_of,
    verdict_of,
)
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome

NOW = 1_000.0


def calls(
    good: int = 0, bad: int = 0, neither: int = 0, *, started_at: float = NOW - 1, took_s: float = 1.0, first: int = 1
) -> list[Call]:
    verdicts: list[bool | None] = [*[True] * good, *[False] * bad, *[None] * neither]
    return [Call(LeaseId(first + n), verdict, started_at, took_s) for n, verdict in enumerate(verdicts)]


def opened(**of_probe: float | None) -> Breaker:
    breaker = after_calls(Breaker(), calls(bad=CALLS_MIN), now=NOW)
    assert breaker.open_until == NOW + OPEN_MIN_S
    return breaker


def probed(breaker: Breaker, *, good: bool | None, now: float, retry_after_s: float | None = None) -> Breaker:
    """After one probe of its own."""
    probe = LeaseId(999)
    under_way = Breaker(open_until=breaker.open_until, opens=breaker.opens, probe=probe, changed_at=breaker.changed_at)
    return after_calls(under_way, [Call(probe, good, now - 1, 1.0, retry_after_s)], now=now)


@pytest.mark.parametrize(
    ("good", "bad", "opens"),
    [(0, 9, False), (0, 10, True), (5, 5, True), (6, 5, False), (50, 49, False), (50, 50, True)],
)
def test_it_opens_at_half_of_at_least_ten(good: int, bad: int, opens: bool) -> None:
    breaker = after_calls(Breaker(), calls(good, bad), now=NOW)
    assert (breaker.open_until is not None) is opens
    assert (breaker.failed, breaker.calls) == (bad, good + bad)


def test_calls_count_only_from_the_first_failure_on() -> None:
    healthy = Breaker()
    assert after_calls(healthy, calls(good=500), now=NOW) == healthy
    assert after_calls(healthy, calls(neither=500), now=NOW) is healthy


def test_throttled_calls_say_nothing() -> None:
    breaker = after_calls(Breaker(), calls(bad=9, neither=100), now=NOW)
    assert breaker.open_until is None
    assert breaker.calls == 9


@pytest.mark.parametrize(
    ("outcome", "failure_class", "verdict"),
    [
        (Outcome.SUCCEEDED, None, True),
        (Outcome.TIMED_OUT, FailureClass.TIMEOUT, False),
        (Outcome.FAILED, FailureClass.OVERLOADED, False),
        (Outcome.FAILED, FailureClass.TIMEOUT, False),
        (Outcome.FAILED, FailureClass.PERMANENT, True),
        (Outcome.FAILED, FailureClass.THROTTLED, None),
        (Outcome.FAILED, FailureClass.CAPACITY, None),
        (Outcome.FAILED, FailureClass.ERROR, None),
        (Outcome.FAILED, FailureClass.PROVIDER_BILLING, None),
        (Outcome.FAILED, None, None),
        (Outcome.LOST, FailureClass.LOST, None),
        (Outcome.CANCELLED, None, None),
        (Outcome.RELEASED, FailureClass.ERROR, None),
    ],
)
def test_only_the_providers_own_failures_count(
    outcome: Outcome,
    failure_class: FailureClass | None,
    verdict: bool | None,
) -> None:
    failure = None if failure_class is None else Failure(failure_class, "no")
    assert verdict_of(outcome, failure) is verdict


def test_a_window_is_as_long_as_the_slowest_call_and_the_one_before_it_counts_too() -> None:
    slow = after_calls(Breaker(), calls(bad=4, started_at=NOW - 100, took_s=100.0), now=NOW)
    later = after_calls(slow, calls(bad=4, started_at=NOW, took_s=100.0), now=NOW + 100)
    assert (later.bad, later.bad_before) == (4, 4)
    assert after_calls(later, calls(bad=2, started_at=NOW + 60, took_s=100.0), now=NOW + 160).open_until is not None


def test_two_windows_later_all_is_forgotten() -> None:
    breaker = after_calls(Breaker(), calls(bad=9), now=NOW)
    later = NOW + 2 * WINDOW_MIN_S
    assert after_calls(breaker, calls(good=1), now=later) == Breaker()
    again = after_calls(breaker, calls(bad=1), now=later)
    assert (again.window_at, again.failed, again.open_until) == (later, 1, None)


def test_a_window_without_failures_ends_the_counting() -> None:
    breaker = after_calls(Breaker(), calls(bad=3), now=NOW)
    second = after_calls(breaker, calls(good=1), now=NOW + WINDOW_MIN_S)
    assert (second.bad_before, second.good) == (3, 1)
    assert after_calls(second, calls(good=1), now=NOW + 2 * WINDOW_MIN_S) == Breaker()


def test_it_is_half_open_from_its_time_on() -> None:
    assert state_of(None, now=NOW) is BreakerState.CLOSED
    assert state_of(NOW + 1, now=NOW) is BreakerState.OPEN
    assert state_of(NOW, now=NOW) is BreakerState.HALF_OPEN


def test_a_good_probe_closes_it_and_the_calls_of_before_are_old_news() -> None:
    closed = probed(opened(), good=True, now=NOW + 20)
    assert (closed.open_until, closed.opens, closed.probe) == (None, 0, None)
    assert after_calls(closed, calls(bad=50, started_at=NOW), now=NOW + 30) == closed
    assert after_calls(closed, calls(bad=50, started_at=NOW + 25), now=NOW + 30).open_until is not None


def test_each_failed_probe_doubles_the_wait_to_a_limit() -> None:
    breaker, waits = opened(), []
    for n in range(1, 20):
        breaker = probed(breaker, good=False, now=NOW + n * 1_000)
        assert breaker.open_until is not None
        waits.append(breaker.open_until - (NOW + n * 1_000))
    assert waits[:4] == [20.0, 40.0, 80.0, OPEN_MAX_S]
    assert waits[-1] == OPEN_MAX_S


def test_a_provider_that_is_down_may_say_for_how_long() -> None:
    later = probed(opened(), good=False, now=NOW + 20, retry_after_s=300.0)
    assert later.open_until == NOW + 320
    assert probed(opened(), good=False, now=NOW + 20, retry_after_s=1e9).open_until == NOW + 20 + 3_600


def test_a_probe_that_says_nothing_makes_room_for_the_next() -> None:
    breaker = opened()
    after = probed(breaker, good=None, now=NOW + 20)
    assert after.probe is None
    assert (after.open_until, after.opens) == (breaker.open_until, breaker.opens)


def test_calls_that_are_not_the_probe_change_nothing_while_it_is_open() -> None:
    breaker = opened()
    assert after_calls(breaker, calls(good=20, bad=20, first=1_000), now=NOW + 5) is breaker


def test_closed_by_hand_it_forgets_what_went_before() -> None:
    fresh = as_new(opened(), now=NOW + 5)
    assert fresh.open_until is None
    assert after_calls(fresh, calls(bad=20, started_at=NOW), now=NOW + 6) == fresh


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 200.0),
            st.lists(st.tuples(st.sampled_from([True, False, None]), st.floats(0.0, 90.0)), min_size=1, max_size=30),
        ),
        max_size=30,
    )
)
def test_whatever_happens_it_has_a_time_to_try_again_and_one_good_probe_closes_it(
    story: list[tuple[float, list[tuple[bool | None, float]]]],
) -> None:
    breaker, now = Breaker(), NOW
    for gap_s, ends in story:
        now += gap_s
        batch = [Call(LeaseId(n), good, now - took_s, took_s) for n, (good, took_s) in enumerate(ends)]
        was, breaker = breaker, after_calls(breaker, batch, now=now)
        if was.open_until is None and breaker.open_until is not None:
            assert breaker.calls >= CALLS_MIN
            assert breaker.failed * 2 >= breaker.calls
            assert OPEN_MIN_S <= breaker.open_until - now <= OPEN_MAX_S
    assert probed(breaker, good=True, now=now + 5_000).open_until is None or breaker.open_until is None
