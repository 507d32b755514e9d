"""Overload levels: one step at a time, slowly up, more slowly down, and never flapping."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.overload import (
    CALM_FRACTION,
    LEVEL_MAX,
    TRUSTED_S,
    Overload,
    Pace,
    degrades,
    frozen,
    next_overload,
    predicted_wait_s,
    pressure,
    refuses,
)
from scheduler.policy.types import PriorityClass

CRITICAL, HIGH, NORMAL, LOW = PriorityClass
PACE = Pace()


def walk(pressures: list[float], *, step_s: float = 1.0, start: Overload | None = None) -> list[Overload]:
    """The states after each of these pressures, one per step."""
    states: list[Overload] = []
    before, now = start, 0.0 if start is None else start.seen_at
    for of_slo in pressures:
        now += step_s
        before = next_overload(before, of_slo, pace=PACE, now=now)
        states.append(before)
    return states


def test_each_level_refuses_more_and_never_the_urgent() -> None:
    refused = [{p for p in PriorityClass if refuses(level, p)} for level in range(LEVEL_MAX + 1)]
    assert refused == [set(), {LOW}, {LOW}, {LOW, NORMAL}]


@pytest.mark.parametrize(
    ("level", "allowed", "expected"), [(1, True, False), (2, True, True), (3, True, True), (3, False, False)]
)
def test_only_pools_that_allow_it_degrade_from_level_two(level: int, *, allowed: bool, expected: bool) -> None:
    assert degrades(level, allowed=allowed) is expected


def test_levels_rise_after_five_seconds_each_and_stop_at_the_last() -> None:
    levels = [s.level for s in walk([1.5] * 30)]
    assert levels[:5] == [0] * 5
    assert levels[5:10] == [1] * 5
    assert levels[10:15] == [2] * 5
    assert levels[15:] == [3] * 15


def test_a_level_is_left_after_thirty_calm_seconds() -> None:
    high = Overload(2, 0.0, None, None, 0.0)
    states = walk([0.5] * 61, start=high)
    assert [s.level for s in states[:30]] == [2] * 30
    assert [s.level for s in states[30:60]] == [1] * 30
    assert states[60].level == 0


def test_between_calm_and_the_objective_nothing_moves() -> None:
    states = walk([0.9] * 100, start=Overload(1, 0.0, None, None, 0.0))
    assert {s.level for s in states} == {1}
    assert {s.since for s in states} == {0.0}


def test_one_good_second_begins_the_climb_anew() -> None:
    assert max(s.level for s in walk([1.5, 1.5, 1.5, 1.5, 0.9] * 10)) == 0


def test_a_silence_counts_neither_as_load_nor_as_calm() -> None:
    above = Overload(0, 0.0, 1.0, None, 2.0)
    assert next_overload(above, 2.0, pace=PACE, now=2.0 + TRUSTED_S + 1.0).level == 0
    calm = Overload(1, 0.0, None, 1.0, 2.0)
    assert next_overload(calm, 0.1, pace=PACE, now=100.0).level == 1


def test_a_paused_pool_keeps_its_level() -> None:
    assert frozen(None, now=3.0) == Overload(0, 3.0, None, None, 3.0)
    assert frozen(Overload(2, 1.0, 1.5, None, 2.0), now=3.0) == Overload(2, 1.0, None, None, 3.0)


@given(st.lists(st.floats(0.0, 5.0), max_size=200), st.floats(0.1, 3.0))
def test_whatever_happens_levels_move_by_one_and_in_their_time(pressures: list[float], step_s: float) -> None:
    states = walk(pressures, step_s=step_s)
    changes: list[tuple[float, int]] = []
    for n, state in enumerate(states):
        before = states[n - 1].level if n else 0
        assert abs(state.level - before) <= 1
        assert 0 <= state.level <= LEVEL_MAX
        assert state.above_since is None or state.calm_since is None
        if state.level != before:
            changes.append((state.seen_at, state.level - before))
            needed_s = PACE.enter_after_s if state.level > before else PACE.leave_after_s
            lasted = [
                p
                for p, s in zip(pressures, states, strict=True)
                if state.seen_at - needed_s <= s.seen_at <= state.seen_at
            ]
            assert all(p > 1.0 for p in lasted) or all(p < CALM_FRACTION for p in lasted)
    for (at, _), (later, by) in pairwise(changes):
        assert later - at >= (PACE.enter_after_s if by > 0 else PACE.leave_after_s) - 1e-6


def test_the_pressure_is_the_worst_of_the_objectives() -> None:
    assert pressure({HIGH: 1.0, LOW: 100.0}, {HIGH: 2.0}) == 0.5
    assert pressure({HIGH: 1.0, NORMAL: 30.0}, {HIGH: 2.0, NORMAL: 10.0}) == 3.0
    assert pressure({HIGH: 9.0}, {}) == 0.0
    assert pressure({}, {CRITICAL: 1.0}) == 0.0


@pytest.mark.parametrize(
    ("oldest_s", "ahead", "rate", "expected"),
    [
        (None, 0, 0.0, 0.0),
        (7.0, 0, 0.0, 0.0),
        (2.0, 100, 10.0, 10.0),
        (20.0, 100, 10.0, 20.0),
        (3.0, 5, 0.0, 3.0),
        (None, 5, 0.0, 0.0),
    ],
)
def test_a_wait_is_what_the_queue_says(oldest_s: float | None, ahead: int, rate: float, expected: float) -> None:
    assert predicted_wait_s(oldest_s=oldest_s, ahead=ahead, started_per_s=rate) == expected
