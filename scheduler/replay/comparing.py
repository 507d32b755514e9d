"""Replays one trace under several settings, in virtual time or live, and adds up each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scheduler.replay.judged import judge
from scheduler.replay.live import play_live
from scheduler.replay.provider import Provider, simulator
from scheduler.replay.settings import Setup
from scheduler.replay.sizing import Size, recommend
from scheduler.replay.summary import Summary, summarise
from scheduler.replay.trace import Trace
from scheduler.replay.virtual import play
from scheduler.replay.world import lay_out


def compare(trace: Trace, setups: Iterable[Setup], *, forecasts: int = 0) -> list[Summary]:
    """One summary for each of the settings, in their order. `forecasts` 0: their calibration is not asked for."""
    return [_summary(trace, setup, forecasts) for setup in setups]


async def compare_live(trace: Trace, setup: Setup, *, speed: float, provider: Provider | None) -> Summary:
    """The same of a live replay; `provider` None: the simulated one."""
    works = lay_out(trace, setup)
    if provider is None:
        async with simulator() as simulated:
            played = await play_live(works, setup, speed=speed, provider=simulated)
    else:
        played = await play_live(works, setup, speed=speed, provider=provider)
    return replace(summarise(played), name=f"{setup.name}-live")


def _summary(trace: Trace, setup: Setup, forecasts: int) -> Summary:
    works = lay_out(trace, setup)
    taken = tuple(work for work in works if work.refused is None)
    calibration = judge(taken, setup, forecasts=forecasts) if forecasts and taken else None
    played = play(works, setup)
    return summarise(played, sizes=tried(trace, setup, recommend(works, setup)), calibration=calibration)


def tried(trace: Trace, setup: Setup, sizes: tuple[Size, ...]) -> tuple[Size, ...]:
    """The recommendations, with what a replay of the trace under all of them comes to."""
    if all(size.recommended == size.slots for size in sizes):
        return sizes
    pools = {**setup.pools, **{s.pool: replace(setup.pools[s.pool], slots=s.recommended) for s in sizes}}
    there = summarise(play(lay_out(trace, replace(setup, pools=pools)), replace(setup, pools=pools))).total
    words = (
        f"Replayed with what is recommended, half of all requests wait at most {_s(there.p50)}, 95 % {_s(there.p95)}."
    )
    return tuple(replace(size, words=(*size.words, words)) for size in sizes)


def _s(seconds: float | None) -> str:
    return "for ever" if seconds is None else f"{seconds:.3g} s"
