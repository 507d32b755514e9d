"""Pace: down at once and once per round trip, up little by little, and only a limit that is used up shows anything."""

from __future__ import annotations

from random import Random

import pytest

from scheduler.policy.aimd import FACTOR_MIN, STEP, Pace, after_refusal, after_success

NOW = 1_000.0


def test_refusals_of_one_round_trip_count_once() -> None:
    first = after_refusal(Pace(), started_at=NOW - 1, taken=50.0, now=NOW)
    assert (first.factor, first.cut_at, first.taken) == (0.7, NOW, 50.0)
    assert after_refusal(first, started_at=NOW - 0.5, taken=51.0, now=NOW + 0.5) is first
    assert after_refusal(first, started_at=NOW, taken=51.0, now=NOW + 1).factor == pytest.approx(0.49)


def test_it_never_goes_below_a_tenth() -> None:
    pace = Pace()
    for n in range(20):
        pace = after_refusal(pace, started_at=NOW + n, taken=0.0, now=NOW + n + 0.5)
    assert pace.factor == FACTOR_MIN


def test_a_limit_that_is_used_up_gets_a_step_every_ten_seconds() -> None:
    pace = Pace(0.5, cut_at=NOW, since=NOW, taken=100.0)
    assert after_success(pace, taken=149.0, gives_per_s=5.0, now=NOW + 9.9) is pace
    up = after_success(pace, taken=150.0, gives_per_s=5.0, now=NOW + 10)
    assert up == Pace(0.5 + STEP, cut_at=NOW, since=NOW + 10, taken=150.0)
    assert after_success(pace, taken=1e9, gives_per_s=5.0, now=NOW + 1e6).factor == pytest.approx(0.5 + 3 * STEP)


def test_a_limit_that_nobody_wants_to_its_end_stays() -> None:
    pace = Pace(0.5, cut_at=NOW, since=NOW, taken=100.0)
    idle = after_success(pace, taken=130.0, gives_per_s=5.0, now=NOW + 10)
    assert idle == Pace(0.5, cut_at=NOW, since=NOW + 10, taken=130.0)


def test_it_ends_at_one_and_then_has_nothing_to_learn() -> None:
    full = after_success(Pace(0.98, since=NOW), taken=1e9, gives_per_s=1.0, now=NOW + 10)
    assert full.factor == 1.0
    assert after_success(full, taken=2e9, gives_per_s=1.0, now=NOW + 99) is full
    assert after_success(Pace(0.5), taken=0.0, gives_per_s=1.0, now=NOW).factor == 0.5


@pytest.mark.parametrize("real", [12.0, 30.0, 45.0])
def test_it_finds_what_a_provider_really_grants(real: float) -> None:
    """Declared 50/s; the provider grants less. From the second minute on: near the real rate, and few refusals."""
    declared, pace, taken, at, chance = 50.0, Pace(), 0.0, 0.0, Random(7)
    granted = refused = 0.0
    bucket = real
    while at < 600.0:
        now, at = at, at + 0.1
        sent = declared * pace.factor * 0.1
        bucket = min(real, bucket + real * 0.1)
        taken += sent
        if sent <= bucket:
            bucket -= sent
            pace = after_success(pace, taken=taken, gives_per_s=declared * pace.factor, now=now)
            granted += sent if at > 60 else 0.0
        else:
            late = chance.uniform(0.05, 0.5)
            pace = after_refusal(pace, started_at=now - late, taken=taken, now=now)
            refused += sent if at > 60 else 0.0
    assert 0.75 * real <= granted / 540.0 <= real
    assert refused <= 0.02 * granted
