"""How many slots a pool should have: the arithmetic, its bounds, its pace, and what it remembers."""

from __future__ import annotations

from dataclasses import replace
from math import floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.autoscale import (
    AutoscaleSettings,
    Decision,
    LimitUse,
    NeedKind,
    Pace,
    PoolLoad,
    Track,
    decide_slots,
)
from scheduler.policy.scale_words import say_decision
from scheduler.policy.types import PriorityClass

SETTINGS = AutoscaleSettings()
HIGH, NORMAL = PriorityClass.HIGH, PriorityClass.NORMAL


def load(now: float = 0.0, **changes: Any) -> PoolLoad:
    plain = PoolLoad(now=now, slots=4, slots_min=0, slots_max=100, service_s=0.8)
    return replace(plain, **changes)


def decide(given_load: PoolLoad, before: Track | None = None) -> Decision:
    return decide_slots(given_load, SETTINGS, before or Track())


def test_arrivals_run_at_a_comfortable_utilization() -> None:
    done = decide(load(arrivals_per_s=(0, 0, 40, 0), slots=40))
    assert done.demand == pytest.approx(40 * 0.8 / 0.75)
    assert (done.desired, done.largest.kind) == (43, NeedKind.ARRIVALS)


def test_a_backlog_is_drained_in_time() -> None:
    done = decide(load(waiting=(0, 0, 300, 0)))
    assert (done.wanted, done.largest.kind) == (8, NeedKind.BACKLOG)


def test_an_objective_asks_for_as_many_as_it_takes_and_no_more_than_there_may_be() -> None:
    busy = load(waiting=(0, 10, 500, 0), arrivals_per_s=(0, 2, 0, 0), slo_s={HIGH: 2.0}, slots=20)
    done = decide(busy)
    assert next(n.slots for n in done.needs if n.priority is HIGH) == 4
    hopeless = decide(load(waiting=(0, 3000, 0, 0), slo_s={HIGH: 2.0}, slots=80))
    assert (hopeless.largest.slots, hopeless.desired) == (100, 100)


def test_reservations_come_on_top() -> None:
    assert decide(load(waiting=(0, 0, 300, 0), reserved=3)).wanted == 11


def test_an_idle_pool_goes_to_zero_and_wakes_up() -> None:
    idle = decide(load(slots=0, arrivals_per_s=(0, 0, 0.001, 0), slo_s={NORMAL: 1.0}))
    assert (idle.desired, idle.pace) == (0, Pace.THERE)
    awake = decide(load(slots=0, waiting=(0, 0, 1, 0)))
    assert (awake.desired, awake.pace) == (1, Pace.UP)


def test_a_paused_pool_needs_nothing() -> None:
    done = decide(load(waiting=(0, 0, 1000, 0), reserved=3, paused=True))
    assert (done.wanted, done.pace) == (0, Pace.DOWN)


def bucket(per_s: float, amount: float = 1.0, share: float = 1.0) -> LimitUse:
    return LimitUse("openai", amount, share, per_s=per_s)


@pytest.mark.parametrize(
    ("use", "most"),
    [
        (bucket(10.0), 8),
        (bucket(9.8), 8),
        (bucket(1000.0, amount=100.0), 8),
        (bucket(50.0), 44),
        (bucket(0.0), 0),
        (LimitUse("gpu", 2.0, 1.0, permits=20.0), 11),
    ],
)
def test_a_limit_feeds_so_many_slots(use: LimitUse, most: int) -> None:
    done = decide(load(waiting=(0, 0, 10_000, 0), limits=(bucket(1e6), use), slots=60))
    assert done.ceiling is not None
    assert done.ceiling.limit == use
    assert done.wanted == most


def test_work_that_does_not_need_the_limit_is_not_bounded_by_it() -> None:
    done = decide(load(waiting=(0, 0, 3000, 0), limits=(bucket(10.0, share=0.5),), slots=60))
    assert done.demand == pytest.approx(80.0)
    assert done.wanted == floor(1.1 * (8 + 40))
    unneeded = decide(load(waiting=(0, 0, 3000, 0), limits=(bucket(0.0, amount=0.0),), slots=60))
    assert unneeded.wanted == 80


def test_going_up_at_most_doubles_or_adds_four() -> None:
    assert decide(load(slots=1, waiting=(0, 0, 10_000, 0))).desired == 5
    done = decide(load(slots=10, waiting=(0, 0, 10_000, 0)))
    assert (done.desired, done.pace, done.wanted) == (20, Pace.STEP_UP, 100)


def test_going_down_is_one_step_per_cooldown_and_not_below_what_was_wanted_lately() -> None:
    track, slots, seen = Track(), 20, []
    for second in range(200):
        waiting = (0, 0, 700, 0) if second == 0 else (0, 0, 0, 0)
        done = decide(load(float(second), slots=slots, waiting=waiting), track)
        track, slots = done.track, done.desired
        seen.append((slots, done.pace))
    slots_at = [slots for slots, _ in seen]
    downs = [second for second in range(1, 200) if slots_at[second] < slots_at[second - 1]]
    # 700 waiting want 19; the first step, from 20 to 19, is free to go at once.
    assert slots_at[:60] == [19] * 60
    assert downs == [60, 90, 120, 150, 180]
    assert {pace for _, pace in seen[1:60]} == {Pace.LATELY}
    assert {pace for _, pace in seen[61:90]} == {Pace.COOLING}


def test_a_clock_that_went_back_by_an_hour_delays_no_step_for_an_hour() -> None:
    done = decide(load(5000.0, slots=10))
    assert done.pace is Pace.DOWN
    track, slots = done.track, done.desired
    downs = 0
    for second in range(200):
        done = decide(load(1400.0 + second, slots=slots), track)
        downs += done.pace is Pace.DOWN
        track, slots = done.track, done.desired
    assert downs >= 4


loads = st.builds(
    load,
    slots=st.integers(2, 60),
    slots_min=st.integers(0, 2),
    slots_max=st.integers(60, 70),
    service_s=st.floats(0.001, 100),
    waiting=st.tuples(*[st.integers(0, 10_000)] * 4),
    arrivals_per_s=st.tuples(*[st.floats(0, 500)] * 4),
    slo_s=st.dictionaries(st.sampled_from(PriorityClass), st.floats(0.1, 60), max_size=4),
    limits=st.lists(
        st.builds(
            LimitUse,
            st.just("r"),
            st.floats(0, 100),
            st.floats(0, 1),
            per_s=st.none() | st.floats(0, 1e4),
            permits=st.floats(0, 1e6),
        ),
        max_size=2,
    ).map(tuple),
    reserved=st.integers(0, 5),
)


@given(st.lists(st.tuples(loads, st.floats(-100, 100)), min_size=1, max_size=5), st.floats(0, 2e9))
def test_every_history_keeps_every_bound(steps: list[tuple[PoolLoad, float]], began: float) -> None:
    track, slots, now = Track(), steps[0][0].slots, began
    for step, elapsed_s in steps:
        now += elapsed_s
        at = replace(step, now=now, slots=min(max(slots, step.slots_min), step.slots_max))
        done = decide(at, track)
        assert at.slots_min <= done.desired <= at.slots_max
        assert done.desired <= at.slots + max(SETTINGS.step_up_abs_max, at.slots)
        assert done.desired >= at.slots - SETTINGS.step_down_max
        if done.ceiling is not None:
            assert done.wanted <= max(done.ceiling.slots * 1.1, done.ceiling.slots + 1, at.slots_min)
            assert done.desired <= max(done.wanted, at.slots)
        assert len(done.track.peaks) <= 62
        sentences = say_decision(at, SETTINGS, done)
        assert all(s[-1] == "." and "inf" not in s and "nan" not in s for s in sentences)
        track, slots = done.track, done.desired


@given(st.lists(st.integers(0, 50), min_size=2, max_size=200), st.sampled_from([0.3, 1.0, 1.7]))
def test_it_never_goes_below_the_highest_wish_of_the_window(demands: list[int], every_s: float) -> None:
    track, slots, wishes = Track(), 50, []
    for n, demand in enumerate(demands):
        now = 1e9 + n * every_s
        done = decide(load(now, slots=slots, reserved=demand), track)
        wishes.append((now, done.wanted))
        lowest = max(wanted for at, wanted in wishes if at > now - SETTINGS.stabilization_window_s)
        assert done.desired >= min(lowest, slots)
        track, slots = done.track, done.desired


def said(**changes: Any) -> str:
    at = load(**changes)
    return " ".join(say_decision(at, SETTINGS, decide(at)))


def test_the_arithmetic_is_told_in_words() -> None:
    assert said(slots=0) == "0: nothing waits and nothing arrives. It has 0."
    assert said(arrivals_per_s=(0, 0, 40, 0), slots=30) == (
        "42.7 = 40/s arriving × 0.8 s each ÷ 75% in use. From 30 to 43 now."
    )
    assert said(paused=True, slots=0).startswith("0: the pool is paused, so nothing starts.")
    assert "25.3 = " in said(waiting=(0, 0, 950, 0), slots=30)
    assert "950 waiting × 0.8 s each ÷ 30 s to clear them." in said(waiting=(0, 0, 950, 0))
    limited = said(waiting=(0, 0, 450, 0), limits=(bucket(10.0),), slots=8)
    assert "12 = 450 waiting" in limited
    assert "The limit openai supports only 8 (10/s × 0.8 s ÷ 1 each); more would only wait or be refused." in limited
    assert limited.endswith("It has 8.")
    assert "for the 40 % of the work that needs it" in said(waiting=(0, 0, 4500, 0), limits=(bucket(10.0, share=0.4),))
    assert "permits ÷ 2 each" in said(waiting=(0, 0, 4500, 0), limits=(LimitUse("gpu", 2.0, 1.0, permits=4.0),))
    assert "and 3 for fixed starts ahead." in said(waiting=(0, 0, 300, 0), reserved=3)
    assert "The pool may have 100 at most." in said(waiting=(0, 0, 300_000, 0))
    assert "The pool has 2 at least." in said(slots_min=2, slots=2, arrivals_per_s=(0, 0, 0.5, 0))
    assert said(slots=10, waiting=(0, 0, 10_000, 0)).endswith("From 10 to 20 now, on the way to 100.")
    assert said(slots=10).endswith("From 10 to 9 now, on the way to 0.")


def test_objectives_are_told_in_words() -> None:
    high: dict[str, Any] = {"slo_s": {HIGH: 2.0}, "arrivals_per_s": (0, 20, 0, 0), "slots": 20}
    some, many = {**high, "waiting": (0, 60, 0, 0)}, {**high, "waiting": (0, 3000, 0, 0)}
    assert "the fewest that keep the p90 wait of high within 2 s (60 ahead, 20/s arriving, 0.8 s each)" in said(**some)
    assert "all that the pool may have, to bring the p90 wait of high nearer to 2 s" in said(**many)


def test_waiting_to_go_down_is_told_in_words() -> None:
    wanted = decide(load(0.0, slots=12, waiting=(0, 0, 400, 0)))
    at = load(1.0, slots=11)
    assert say_decision(at, SETTINGS, decide(at, wanted.track))[-1] == (
        "It keeps 11: as many were wanted within the last 60 s."
    )
    lowered = decide(load(0.0, slots=12)).track
    at = load(1.0, slots=11)
    assert say_decision(at, SETTINGS, decide(at, lowered))[-1] == "It has 11 and goes down by 1 in 30 s, to 0."
