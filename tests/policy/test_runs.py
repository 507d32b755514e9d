"""What a run may use as a whole: the caps it gets, when its owner is told, and what ends it."""

from __future__ import annotations

import pytest

from scheduler.errors import Conflict, Refused
from scheduler.policy.runs import (
    MOVES,
    OPEN,
    Asked,
    Cap,
    Caps,
    RunQuota,
    RunState,
    Use,
    caps_for,
    fatal,
    fault_in_step,
    faults_in_caps,
    heed_at,
    near_caps,
)
from scheduler.policy.types import RunId

RUN = RunId(1)


def test_a_run_has_what_it_asks_for_else_its_tenants_quota_else_the_usual() -> None:
    assert caps_for(Asked(), RunQuota()) == Caps(20, 8, None, None, None)
    quota = RunQuota(max_steps=5, max_width=2, max_cost_nano=7)
    assert caps_for(Asked(), quota) == Caps(5, 2, None, 7, None)
    assert caps_for(Asked(3, 1, 100, 6, 60.0), quota) == Caps(3, 1, 100, 6, 60.0)


def test_caps_beyond_the_tenants_or_without_sense_are_named() -> None:
    assert faults_in_caps(Caps(), RunQuota()) == ()
    wrong = Caps(6, 0, 0, 8, -1.0)
    faults = faults_in_caps(wrong, RunQuota(max_steps=5, max_width=2, max_cost_nano=7))
    assert [fault.loc for fault in faults] == [
        ("max_steps",),
        ("max_width",),
        ("max_tokens",),
        ("max_cost_usd",),
        ("wall_clock_s",),
    ]
    assert faults[0].msg == "max_steps of a run here is above 0 and at most 5."


def test_a_cap_is_near_at_four_fifths_and_all_but_steps_end_the_run_when_reached() -> None:
    caps = Caps(max_steps=10, max_tokens=100, max_cost_nano=1_000, wall_s=50.0)
    at_ease = Use(caps, 0.0, steps=7, tokens=79, cost_nano=799)
    assert near_caps(at_ease, now=39.0) == ()
    near = near_caps(Use(caps, 0.0, steps=10, tokens=80, cost_nano=900), now=40.0)
    assert [each.cap for each in near] == list(Cap)
    assert [each.reached for each in near] == [True, False, False, False]
    assert fatal(near) is None
    over = fatal(near_caps(Use(caps, 0.0, steps=1, tokens=101), now=1.0))
    assert over is not None
    assert (over.cap, over.used, over.most) == (Cap.TOKENS, 101.0, 100.0)
    assert near_caps(Use(Caps(), 0.0, steps=1, tokens=10**9, cost_nano=10**12), now=10**9) == ()


def test_the_clock_is_heeded_at_the_alert_then_at_the_end_then_no_more() -> None:
    caps = Caps(wall_s=100.0)
    assert heed_at(Caps(), 5.0, now=5.0) is None
    assert heed_at(caps, 5.0, now=5.0) == 85.0
    assert heed_at(caps, 5.0, now=85.0) == 105.0
    assert heed_at(caps, 5.0, now=105.0) is None


def test_a_step_is_taken_in_by_an_open_run_with_steps_left() -> None:
    for state in OPEN:
        assert fault_in_step(RUN, state=state, steps=1, max_steps=2) is None
    full = fault_in_step(RUN, state=RunState.ACTIVE, steps=2, max_steps=2)
    unknown = fault_in_step(RUN, state=None, steps=0, max_steps=0)
    assert isinstance(full, Refused)
    assert isinstance(unknown, Refused)
    assert (full.code, unknown.code) == ("run_steps", "unknown_run")


@pytest.mark.parametrize("state", sorted(set(RunState) - OPEN))
def test_a_run_that_has_ended_takes_nothing_in_and_only_a_killed_one_comes_back(state: RunState) -> None:
    fault = fault_in_step(RUN, state=state, steps=0, max_steps=2)
    assert isinstance(fault, Conflict)
    assert fault.code == "run_ended"
    assert MOVES[state] == (frozenset({RunState.ACTIVE}) if state is RunState.KILLED else frozenset())
