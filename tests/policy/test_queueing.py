"""The wait in front of some slots, and the fewest slots that keep it short."""

from math import factorial, inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.queueing import Queue, fewest_slots, smoothing, wait_p90_s


def queue(*, ahead: float = 0.0, passing: float = 0.0, load: float = 0.0, service_s: float = 1.0) -> Queue:
    return Queue(ahead=ahead, passing_per_s=passing, load_per_s=load, service_s=service_s)


def test_nothing_ahead_and_nothing_arriving_waits_for_nothing() -> None:
    assert wait_p90_s(queue(), 0) == 0.0
    assert fewest_slots(queue(), 1.0, slots_max=10) == 0


def test_what_waits_ahead_drains_past_more_urgent_arrivals() -> None:
    assert wait_p90_s(queue(ahead=20), 10) == pytest.approx(2.0)
    assert wait_p90_s(queue(ahead=20, passing=5, load=5), 10) == pytest.approx(4.0)
    assert wait_p90_s(queue(ahead=20, passing=10, load=0), 10) == inf


def test_slots_that_cannot_keep_up_make_an_endless_wait() -> None:
    assert wait_p90_s(queue(load=4.0), 4) == inf


@pytest.mark.parametrize(("slots", "load"), [(1, 0.5), (5, 4.0), (12, 9.5)])
def test_bunching_agrees_with_erlangs_formula(slots: int, load: float) -> None:
    top = load**slots / factorial(slots) * slots / (slots - load)
    waits = top / (sum(load**n / factorial(n) for n in range(slots)) + top)
    assert wait_p90_s(queue(load=load), slots) == pytest.approx(log(waits / 0.1) / (slots - load))


def test_one_slot_waits_as_long_as_its_formula_says() -> None:
    # M/M/1 at half load: P(W > t) = 0.5 exp(-0.5 t), so the p90 is ln(5) / 0.5.
    assert wait_p90_s(queue(load=0.5), 1) == pytest.approx(3.2189, abs=1e-4)
    assert wait_p90_s(queue(load=0.05), 1) == 0.0


def test_the_fewest_are_enough_and_one_fewer_is_not() -> None:
    stream = queue(ahead=10, passing=8, load=20, service_s=0.8)
    fewest = fewest_slots(stream, 2.0, slots_max=100)
    assert fewest is not None
    assert wait_p90_s(stream, fewest) <= 2.0 < wait_p90_s(stream, fewest - 1)
    assert fewest_slots(stream, 2.0, slots_max=fewest - 1) is None


queues = st.builds(
    lambda ahead, passing, own, service_s: queue(ahead=ahead, passing=passing, load=passing + own, service_s=service_s),
    st.integers(0, 10_000),
    st.floats(0, 50),
    st.floats(0, 50),
    st.floats(0.001, 100),
)


@given(queues, st.integers(0, 100), st.integers(1, 9))
def test_more_slots_never_make_a_longer_wait(stream: Queue, slots: int, more: int) -> None:
    assert wait_p90_s(stream, slots + more) <= wait_p90_s(stream, slots) * (1 + 1e-9)


@given(queues, st.floats(0.1, 60), st.integers(0, 100))
def test_the_search_agrees_with_the_formula(stream: Queue, wait_max_s: float, slots_max: int) -> None:
    fewest = fewest_slots(stream, wait_max_s, slots_max=slots_max)
    if fewest is None:
        assert wait_p90_s(stream, slots_max) > wait_max_s * (1 - 1e-6)
    else:
        assert wait_p90_s(stream, fewest) <= wait_max_s * (1 + 1e-6)
        assert fewest == 0 or wait_p90_s(stream, fewest - 1) > wait_max_s * (1 - 1e-6)


def test_time_that_ran_backwards_weighs_nothing() -> None:
    assert smoothing(-5.0, 10.0) == 0.0
    assert 0.6 < smoothing(10.0, 10.0) < 0.7
