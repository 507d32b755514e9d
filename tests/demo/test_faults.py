"""The script decides who is struck, when and how often."""

from __future__ import annotations

from random import Random

import pytest

from scheduler.demo.provider_sim.faults import Script, Strike, parse_faults


def script(*faults: dict[str, object]) -> Script:
    return Script(parse_faults(list(faults)), set_at=100.0)


def strike(script: Script, *, at: float = 0.0, model: str = "m", prompt: str = "hello", seed: int = 1) -> Strike | None:
    return script.strike(model=model, prompt=prompt, now=100.0 + at, chance=Random(seed))


def test_a_healthy_provider_strikes_nobody() -> None:
    assert strike(script()) is None


def test_a_fault_has_its_time() -> None:
    faults = script({"kind": "throttle", "after_s": 2, "for_s": 3})
    assert strike(faults, at=1.9) is None
    found = strike(faults, at=2.5)
    assert found is not None
    assert found.retry_after_s == pytest.approx(2.5)
    assert strike(faults, at=5.0) is None


def test_a_delay_that_is_given_goes_before_the_time_left() -> None:
    found = strike(script({"kind": "throttle", "for_s": 3, "retry_after_s": 60}))
    assert found is not None
    assert found.retry_after_s == 60


def test_a_fault_strikes_so_often_and_then_the_next_one_has_its_turn() -> None:
    faults = script({"kind": "error", "count": 2}, {"kind": "overload"})
    kinds = [found.fault.kind for found in (strike(faults) for _ in range(4)) if found is not None]
    assert kinds == ["error", "error", "overload", "overload"]
    assert [each["struck"] for each in faults.as_json()] == [2, 2]


def test_a_fault_may_concern_one_model_or_one_text() -> None:
    faults = script({"kind": "error", "model": "big"}, {"kind": "hang", "contains": "poison"})
    assert strike(faults) is None
    big, poison = strike(faults, model="big"), strike(faults, prompt="a poisonous pill")
    assert big is not None
    assert big.fault.kind == "error"
    assert poison is not None
    assert poison.fault.kind == "hang"


def test_chance_is_seeded() -> None:
    faults, chance = script({"kind": "error", "probability": 0.25}), Random(7)
    struck = [
        script_strike is not None
        for script_strike in (faults.strike(model="m", prompt="", now=100.0, chance=chance) for _ in range(2000))
    ]
    assert 0.2 < sum(struck) / len(struck) < 0.3


@pytest.mark.parametrize(
    "entry",
    [
        "error", {}, {"kind": "gremlin"}, {"kind": "error", "often": 1}, {"kind": "error", "status": 200},
        {"kind": "error", "status": 500.5}, {"kind": "throttle", "retry_after_format": "smoke"},
        {"kind": "error", "count": -1}, {"kind": "error", "for_s": "5"}, {"kind": "error", "probability": True},
        {"kind": "error", "contains": 5},
    ],
)  # fmt: skip
def test_a_script_that_makes_no_sense_is_refused(entry: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_faults([entry])


@pytest.mark.parametrize("whole", [{}, None, [{"kind": "error"}] * 101])
def test_a_script_is_a_short_list(whole: object) -> None:
    with pytest.raises(ValueError, match="at most 100"):
        parse_faults(whole)
