"""Decides how to say to a person why a pool has as many slots as it has: the arithmetic, in sentences."""

from __future__ import annotations

from typing import Final, assert_never

from scheduler.policy.autoscale import AutoscaleSettings, Ceiling, Decision, Need, NeedKind, Pace, PoolLoad

WHOLE_FROM: Final = 100.0
"""From here on tenths say nothing."""


def say_decision(load: PoolLoad, settings: AutoscaleSettings, decision: Decision) -> tuple[str, ...]:
    """The sum first, then what bounds it, then how fast the pool goes there."""
    said = (_sum(load, settings, decision), _bound(load, decision), _pace(load, settings, decision))
    return tuple(sentence for sentence in said if sentence)


def say_ceiling(load: PoolLoad, ceiling: Ceiling) -> str:
    """How many slots a limit feeds, and how that was computed."""
    use = ceiling.limit
    supply = (
        f"{_number(use.permits)} permits" if use.per_s is None else f"{_number(use.per_s)}/s × {_s(load.service_s)}"
    )
    rest = "" if use.share >= 1.0 else f" for the {round(100 * use.share)} % of the work that needs it"
    return (
        f"The limit {use.name} supports only {_number(ceiling.slots)} ({supply} ÷ {_number(use.amount)} each{rest}); "
        "more would only wait or be refused."
    )


def _sum(load: PoolLoad, settings: AutoscaleSettings, decision: Decision) -> str:
    largest = decision.largest
    if load.paused:
        return "0: the pool is paused, so nothing starts."
    if decision.demand <= 0.0:
        return "0: nothing waits and nothing arrives."
    reserved = f", and {load.reserved} for fixed starts ahead" if load.reserved else ""
    return f"{_number(decision.demand)} = {_need(load, settings, largest)}{reserved}."


def _need(load: PoolLoad, settings: AutoscaleSettings, need: Need) -> str:
    each = f"{_s(load.service_s)} each"
    match need.kind:
        case NeedKind.ARRIVALS:
            return f"{_number(sum(load.arrivals_per_s))}/s arriving × {each} ÷ {settings.target_utilization:.0%} in use"
        case NeedKind.BACKLOG:
            return f"{sum(load.waiting):,.0f} waiting × {each} ÷ {_s(settings.drain_time_s)} to clear them"
        case NeedKind.OBJECTIVE:
            return _objective(load, need, each)
        case _:
            assert_never(need.kind)


def _objective(load: PoolLoad, need: Need, each: str) -> str:
    assert need.priority is not None  # noqa: S101 - an objective is a class's
    slo, name = _s(load.slo_s[need.priority]), need.priority.label
    upto = need.priority + 1
    queue = f"{sum(load.waiting[:upto]):,.0f} ahead, {_number(sum(load.arrivals_per_s[:upto]))}/s arriving, {each}"
    if need.slots >= load.slots_max:
        return f"all that the pool may have, to bring the p90 wait of {name} nearer to {slo} ({queue})"
    return f"the fewest that keep the p90 wait of {name} within {slo} ({queue})"


def _bound(load: PoolLoad, decision: Decision) -> str:
    """Only what decides: a bound that does not bind is not worth a sentence."""
    ceiling = decision.ceiling
    if ceiling is not None and ceiling.most < decision.demand:
        return say_ceiling(load, ceiling)
    if decision.demand > load.slots_max:
        return f"The pool may have {load.slots_max} at most."
    if decision.wanted == load.slots_min > decision.demand:
        return f"The pool has {load.slots_min} at least."
    return ""


def _pace(load: PoolLoad, settings: AutoscaleSettings, decision: Decision) -> str:
    match decision.pace:
        case Pace.THERE:
            return f"It has {load.slots}."
        case Pace.UP:
            return f"From {load.slots} to {decision.desired} now."
        case Pace.STEP_UP:
            return f"From {load.slots} to {decision.desired} now, on the way to {decision.wanted}."
        case Pace.DOWN:
            return f"From {load.slots} to {decision.desired} now, on the way to {decision.wanted}."
        case Pace.COOLING:
            step = f"{settings.step_down_max} in {_s(settings.cooldown_s)}"
            return f"It has {load.slots} and goes down by {step}, to {decision.wanted}."
        case Pace.LATELY:
            window = _s(settings.stabilization_window_s)
            return f"It keeps {load.slots}: as many were wanted within the last {window}."
        case _:
            assert_never(decision.pace)


def _s(seconds: float) -> str:
    return f"{_number(seconds)} s"


def _number(value: float) -> str:
    """Two digits below one, tenths while they say something, whole numbers beyond."""
    if value < 1.0:
        return f"{value:.2g}"
    return f"{value:,.1f}".removesuffix(".0") if value < WHOLE_FROM else f"{value:,.0f}"
