"""Recommends how many slots a pool should have, with the arithmetic in words.

By Little's law: requests per second × seconds of each = slots in use. A limit that the work needs gives a ceiling: more
slots than it can feed would only wait. It recommends for the busiest minute of the trace, not for its mean.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.replay.settings import Counts, Setup
from scheduler.replay.world import Work

WINDOW_S: Final = 60.0
OVER_CEILING: Final = 1.1
"""A little more than a limit feeds, so that it and not the pool is what holds work up."""


@dataclass(frozen=True, slots=True)
class Size:
    """A recommendation for one pool. `limit` names the ceiling when it is lower than the demand."""

    pool: str
    slots: int
    recommended: int
    limit: str | None
    words: tuple[str, ...]


def recommend(works: tuple[Work, ...], setup: Setup) -> tuple[Size, ...]:
    """For each pool that has work."""
    return tuple(
        _size(pool, [w for w in works if w.pool == pool and w.refused is None], setup)
        for pool in setup.pools
        if any(w.pool == pool and w.refused is None for w in works)
    )


def _size(pool: str, works: list[Work], setup: Setup) -> Size:
    slots = setup.pools[pool].slots
    runs_s = sum(w.runs_s for w in works) / len(works)
    span_s = max(WINDOW_S, works[-1].request.at_s - works[0].request.at_s)
    busiest = max(Counter(int(w.request.at_s // WINDOW_S) for w in works).values()) / WINDOW_S
    mean, target = len(works) / span_s, AutoscaleSettings().target_utilization
    demand = busiest * runs_s / target
    words = [
        f"On average {mean:.3g} requests/s × {runs_s:.3g} s each keep {mean * runs_s:.3g} slots busy.",
        f"In the busiest minute {busiest:.3g} requests/s × {runs_s:.3g} s = {busiest * runs_s:.3g} slots.",
        f"÷ {target:g}, so that they are not all busy all the time: {demand:.3g} slots.",
    ]
    limit, ceiling = _ceiling(pool, works, setup, runs_s, words)
    held = OVER_CEILING * ceiling < demand
    recommended = max(1, ceil(min(demand, OVER_CEILING * ceiling) - 1e-9))
    if held:
        words.append(
            f"{demand:.3g} is more than {limit} feeds; slots beyond {OVER_CEILING:g} × {ceiling:.3g} would only wait."
        )
    words.append(f"Recommended: {recommended} {'slot' if recommended == 1 else 'slots'}; the settings have {slots}.")
    return Size(pool, slots, recommended, limit if held else None, tuple(words))


def _ceiling(pool: str, works: list[Work], setup: Setup, runs_s: float, words: list[str]) -> tuple[str | None, float]:
    """The lowest number of slots that a limit keeps busy, and which limit it is."""
    lowest: tuple[str | None, float] = (None, inf)
    for name in setup.needs(pool):
        limit = setup.limits[name]
        if limit.counts is Counts.CONCURRENCY:
            feeds = float(limit.permits)
            words.append(f"The limit {name} lets {limit.permits} run at once.")
        else:
            rate = limit.per_minute / 60.0 * (1.0 - limit.margin)
            amount = sum(w.amounts[name] for w in works) / len(works)
            feeds = rate / amount * runs_s if amount > 0.0 else inf
            words.append(
                f"The limit {name} gives {rate:,.5g} {limit.counts.value}/s ÷ {amount:,.5g} a request "
                f"× {runs_s:.3g} s: it keeps {feeds:.3g} slots busy."
            )
        if feeds < lowest[1]:
            lowest = (name, feeds)
    return lowest
