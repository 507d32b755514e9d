"""A shared limit gives no more than it has, and says when it will have enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.limits import EPSILON, ShortBy, capacity, effective_rate, fits_ever, level_now, limit_at, shortage
from scheduler.policy.types import ResourceView
from tests.policy.build import bucket, semaphore

EPOCH = 1_796_000_000.0
rates = st.floats(1e-3, 1e6)
bursts = st.floats(1e-3, 1e9)


def short_by(view: ResourceView, amount: float, *, now: float = 0.0) -> ShortBy | None:
    limit = limit_at(view, now=now)
    short = shortage(limit, limit.available, amount, now=now)
    return None if short is None else short.by


def test_a_bucket_refills_with_time_up_to_its_burst() -> None:
    assert level_now(bucket(rate=2.0, burst=10.0, level=1.0), now=3.0) == 7.0
    assert level_now(bucket(rate=2.0, burst=10.0, level=1.0), now=100.0) == 10.0


def test_a_clock_that_goes_back_refills_nothing_and_takes_nothing() -> None:
    assert level_now(bucket(rate=2.0, burst=10.0, level=1.0, at=50.0), now=3.0) == 1.0


def test_the_margin_is_kept_back_from_rate_and_burst() -> None:
    view = bucket(rate=100.0, burst=50.0, margin=0.02)
    assert (effective_rate(view), capacity(view)) == (98.0, 49.0)


def test_the_factor_scales_rate_and_permits_but_not_what_was_saved() -> None:
    view = bucket(rate=100.0, burst=50.0, factor=0.5)
    assert (effective_rate(view), capacity(view)) == (50.0, 50.0)
    assert capacity(semaphore(permits=10, factor=0.7)) == 7.0
    assert capacity(semaphore(permits=3, factor=0.7)) == 2.0


def test_a_request_above_the_effective_burst_goes_when_the_bucket_is_full_and_leaves_a_debt() -> None:
    view = bucket(rate=1.0, burst=100.0, margin=0.1)
    assert short_by(view, 100.0) is None
    assert short_by(bucket(rate=1.0, burst=100.0, level=89.0, margin=0.1), 100.0) is ShortBy.IN_USE
    assert level_now(bucket(rate=1.0, burst=100.0, level=-10.0, margin=0.1), now=10.0) == -1.0


@pytest.mark.parametrize(
    "view", [bucket(rate=0.0), bucket(burst=0.0), semaphore(permits=0), semaphore(permits=1, factor=0.5)]
)
@pytest.mark.parametrize("amount", [0.0, 1.0])
def test_a_limit_of_zero_is_a_pause_that_only_an_edit_ends(view: ResourceView, amount: float) -> None:
    short = shortage(limit_at(view, now=0.0), 10.0, amount, now=0.0)
    assert short is not None
    assert (short.available, short.look_again_at, short.by) == (0.0, None, ShortBy.CLOSED)


@pytest.mark.parametrize("view", [bucket(blocked_until=5.0), bucket(level=-3.0, blocked_until=5.0)])
def test_nothing_is_taken_before_the_time_a_provider_named(view: ResourceView) -> None:
    short = shortage(limit_at(view, now=4.999), 10.0, 1.0, now=4.999)
    assert short is not None
    assert (short.look_again_at, short.by) == (5.0, ShortBy.CLOSED)
    assert limit_at(view, now=5.0).closed_until is None


def test_permits_come_back_when_leases_end_so_no_time_is_named() -> None:
    assert limit_at(semaphore(permits=3, held=2.0), now=0.0).available == 1.0
    assert short_by(semaphore(permits=3, held=2.0), 1.0) is None
    short = shortage(limit_at(semaphore(permits=3, held=2.0), now=0.0), 1.0, 2.0, now=0.0)
    assert short is not None
    assert (short.available, short.look_again_at, short.by) == (1.0, None, ShortBy.IN_USE)


def test_more_permits_than_there_are_left_after_an_edit_are_out_of_reach() -> None:
    assert short_by(semaphore(permits=3), 4.0) is ShortBy.OUT_OF_REACH


def test_more_tokens_than_a_lowered_burst_are_out_of_reach() -> None:
    assert short_by(bucket(burst=5.0), 5.1) is ShortBy.OUT_OF_REACH


def test_permits_lowered_below_what_is_held_give_nothing_until_enough_came_back() -> None:
    assert limit_at(semaphore(permits=2, held=5.0), now=0.0).available == -3.0
    assert short_by(semaphore(permits=2, held=5.0), 1.0) is ShortBy.IN_USE


def test_what_could_never_be_given_is_told_by_the_declared_capacity() -> None:
    assert fits_ever(bucket(burst=100.0, margin=0.5), 100.0)
    assert not fits_ever(bucket(burst=100.0), 100.1)
    assert fits_ever(semaphore(permits=3), 3.0)
    assert not fits_ever(semaphore(permits=3), 4.0)
    assert not fits_ever(bucket(), float("nan"))


@given(rate=rates, burst=bursts, part=st.floats(-1.0, 1.0), wanted=st.floats(0.0, 1.0), age_s=st.floats(0.0, 1e4))
def test_at_the_time_named_the_amount_is_there(
    rate: float, burst: float, part: float, wanted: float, age_s: float
) -> None:
    view = bucket(rate=rate, burst=burst, level=burst * part, at=EPOCH - age_s)
    limit = limit_at(view, now=EPOCH)
    short = shortage(limit, limit.available, burst * wanted, now=EPOCH)
    if short is not None:
        again = short.look_again_at
        assert again is not None
        assert again > EPOCH
        later = limit_at(view, now=again)
        assert shortage(later, later.available, burst * wanted, now=again) is None


@given(
    rate=rates,
    burst=bursts,
    margin=st.floats(0.0, 0.5),
    asks=st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 1.0)), max_size=40),
)
def test_over_every_window_a_bucket_gives_at_most_its_rate_times_the_time_plus_its_burst(
    rate: float, burst: float, margin: float, asks: list[tuple[float, float]]
) -> None:
    level, at, now = burst * (1.0 - margin), EPOCH, EPOCH
    grants: list[tuple[float, float]] = []
    for pause_s, part in asks:
        now += pause_s
        limit = limit_at(bucket(rate=rate, burst=burst, level=level, at=at, margin=margin), now=now)
        if shortage(limit, limit.available, burst * part, now=now) is None:
            level, at = limit.available - burst * part, now
            grants.append((now, burst * part))
    for first in range(len(grants)):
        given_out = 0.0
        for when, amount in grants[first:]:
            given_out += amount
            allowed = rate * (when - grants[first][0]) + burst
            assert given_out <= allowed * (1.0 + 1e-6) + EPSILON
