"""The provider's door lets in exactly what its limits allow, and charges nothing for what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.demo.provider_sim.limits import RETRY_WITHOUT_REFILL_S, Admission, Door, Draw, LimitSettings, Refusal


def settings(**limits: object) -> LimitSettings:
    return LimitSettings().edited(limits)


def enter(door: Door, *, tokens: float = 1.0, now: float = 0.0, model: str = "m") -> Admission | Refusal:
    return door.enter(model, Draw(tokens), now=now)


def cause(outcome: Admission | Refusal) -> str | None:
    return outcome.cause if isinstance(outcome, Refusal) else None


@given(st.floats(0.5, 50), st.integers(1, 20), st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_grants_never_pass_the_burst_plus_the_rate(rate: float, burst: int, gaps_s: list[float]) -> None:
    door, now, granted = Door(settings(rate=rate, burst=burst)), 0.0, 0
    for gap_s in gaps_s:
        now += gap_s
        granted += isinstance(enter(door, now=now), Admission)
    assert granted <= burst + rate * now + 1e-6


@given(st.floats(0.5, 50), st.integers(1, 20))
def test_who_waits_as_long_as_told_is_let_in(rate: float, burst: int) -> None:
    door = Door(settings(rate=rate, burst=burst))
    for _ in range(burst):
        assert isinstance(enter(door), Admission)
    refusal = enter(door)
    assert isinstance(refusal, Refusal)
    assert isinstance(enter(door, now=refusal.retry_after_s), Admission)


def test_tokens_refill_over_a_minute() -> None:
    door = Door(settings(tokens_per_minute=600))
    assert cause(enter(door, tokens=600)) is None
    refusal = enter(door, tokens=100)
    assert isinstance(refusal, Refusal)
    assert refusal.cause == "tokens"
    assert refusal.retry_after_s == pytest.approx(10.0)
    assert cause(enter(door, tokens=100, now=10.0)) is None
    assert cause(enter(door, tokens=601, now=1000.0)) == "too_large"


def test_a_refused_request_is_charged_nothing() -> None:
    door = Door(settings(rate=1, burst=2, tokens_per_minute=60, concurrency=5))
    for _ in range(10):
        assert cause(enter(door, tokens=61)) == "too_large"
    assert cause(enter(door)) is None
    assert cause(enter(door)) is None
    assert cause(enter(door)) == "requests"


def test_leaving_gives_the_place_back_once() -> None:
    door = Door(settings(concurrency=1))
    first = enter(door)
    assert isinstance(first, Admission)
    assert cause(enter(door)) == "concurrency"
    assert first.leave()
    assert not first.leave()
    assert cause(enter(door)) is None
    assert cause(enter(door)) == "concurrency"


def test_limits_count_everything_or_each_model() -> None:
    shared, apart = Door(settings(rate=1, burst=1)), Door(settings(rate=1, burst=1, scope="model"))
    assert [cause(enter(shared, model=model)) for model in "ab"] == [None, "requests"]
    assert [cause(enter(apart, model=model)) for model in "aba"] == [None, None, "requests"]


def test_a_model_may_have_limits_of_its_own_on_top() -> None:
    door = Door(settings(rate=100, burst=2, models={"big": {"concurrency": 1}}))
    first = enter(door, model="big")
    assert isinstance(first, Admission)
    assert cause(enter(door, model="big")) == "concurrency"
    assert cause(enter(door, model="small")) is None
    assert cause(enter(door, model="small")) == "requests"


def test_an_edit_keeps_what_is_in_flight_and_the_level() -> None:
    door = Door(settings(rate=1, burst=10, concurrency=1))
    first = enter(door)
    assert isinstance(first, Admission)
    door.edit(settings(rate=1, burst=3, concurrency=2), now=0.0)
    assert [cause(enter(door)) for _ in range(2)] == [None, "concurrency"]
    first.leave()
    assert [cause(enter(door)) for _ in range(2)] == [None, "concurrency"]
    door.edit(settings(), now=0.0)
    assert cause(enter(door)) is None


def test_a_rate_of_zero_never_refills() -> None:
    door = Door(settings(rate=0, burst=0))
    refusal = enter(door, now=1e6)
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after_s == RETRY_WITHOUT_REFILL_S


def test_filling_is_a_fresh_start() -> None:
    door = Door(settings(rate=0, burst=1))
    assert [cause(enter(door)) for _ in range(2)] == [None, "requests"]
    door.fill()
    assert cause(enter(door)) is None


@pytest.mark.parametrize(
    "changes",
    [
        [],
        {"rate": -1},
        {"rate": "5"},
        {"rate": True},
        {"rate": float("nan")},
        {"speed": 1},
        {"scope": "moon"},
        {"models": []},
        {"models": {"m": 1}},
    ],
)
def test_limits_that_make_no_sense_are_refused(changes: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        LimitSettings().edited(changes)
