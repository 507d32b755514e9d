"""Holds forecasts to account: learns from how they came out, and reports how good they were.

A run of the planner knows limits, order and backlog well, and its own errors not at all. So its middle is moved by the
median error of the last waits of the same pool and class, and its band is made as wide as nine in ten of them needed,
whatever the distribution of the errors is (split conformal prediction over a moving window, after Vovk et al.). Errors
are measured against what the run said, not what was published: an outcome comes a whole wait late, and must not be
answered again and again meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, exp, inf, log
from statistics import median
from typing import Final, NamedTuple

HORIZON_S: Final = 900.0
"""Nobody looks further ahead than this."""
INSIDE_WANTED: Final = 0.91
"""Slightly more than nine in ten: what the band promises is a bound."""
TELLING_S: Final = 1.0
"""Waits and bands below this teach nothing about the band and count not for the error."""
KEPT: Final = 256
PRIOR: Final = 10
"""A track begins as if it had seen this many waits that its forecast, unstretched, just covered; ten real ones each
take the place of one."""
BIAS_MAX: Final = 0.5
SPREAD_PART: Final = 0.1
SPREAD_S: Final = 0.25
"""The unit of the band: its own spread, this part of the wait, and this long, for no clock and no poll is exact."""


class Band(NamedTuple):
    """A wait: half of the tasks like this wait at most `p50_s`, nine in ten `p90_s`. Infinite: cannot be told."""

    p50_s: float
    p90_s: float


@dataclass(slots=True)
class Track:
    """What the record of one pool and class teaches about the next forecast.

    `biases` are logarithms of wait ÷ forecast, `needs` are the widths that would have covered the wait, in units.
    """

    biases: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    needs: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    bias: float = 0.0
    stretch: float = 1.0

    @classmethod
    def of(cls, biases: Iterable[float], needs: Iterable[float]) -> Track:
        """A track that goes on from what another had seen."""
        track = cls(deque(biases, maxlen=KEPT), deque(needs, maxlen=KEPT))
        track.conclude()
        return track

    def conclude(self) -> None:
        """Take the middle and the width from what was seen."""
        self.bias = min(BIAS_MAX, max(-BIAS_MAX, median([*self.biases, *_prior(0.0, len(self.biases))])))
        needs = sorted([*self.needs, *_prior(1.0, len(self.needs))])
        self.stretch = max(0.0, needs[min(len(needs) - 1, ceil(INSIDE_WANTED * (len(needs) + 1)) - 1)])

    def corrected(self, raw: Band) -> Band:
        """The band to publish for one that runs of the planner gave."""
        if raw.p50_s == inf:
            return raw
        p50_s = raw.p50_s * exp(self.bias)
        return Band(p50_s, p50_s + self.stretch * _unit_s(raw, p50_s))

    def learn(self, raw: Band, wait_s: float) -> None:
        """Compare what runs of the planner gave with what happened."""
        now = self.corrected(raw)
        if raw.p50_s == inf or max(wait_s, now.p90_s) < TELLING_S:
            return
        if min(wait_s, raw.p50_s) >= TELLING_S:
            self.biases.append(log(wait_s / raw.p50_s))
        self.needs.append((wait_s - now.p50_s) / _unit_s(raw, now.p50_s))
        self.conclude()


def _prior(value: float, seen: int) -> list[float]:
    return [value] * max(0, PRIOR - seen // PRIOR)


def _unit_s(raw: Band, p50_s: float) -> float:
    return max(min(raw.p90_s, raw.p50_s + HORIZON_S) - raw.p50_s, 0.0) + SPREAD_PART * p50_s + SPREAD_S


class Outcome(NamedTuple):
    """A forecast and what happened."""

    band: Band
    wait_s: float


@dataclass(frozen=True, slots=True)
class Report:
    """How good forecasts were. `inside_p90` is of all waits, the others of waits above a second; None: none such."""

    n: int
    inside_p90: float | None
    n_telling: int
    inside_p90_telling: float | None
    median_error: float | None


def report(outcomes: Iterable[Outcome]) -> Report:
    """Compare forecasts with outcomes. A forecast that said nothing is not counted."""
    known = [o for o in outcomes if o.band.p50_s < inf]
    telling = [o for o in known if o.wait_s > TELLING_S]
    errors = [abs(o.band.p50_s - o.wait_s) / o.wait_s for o in telling]
    return Report(
        n=len(known),
        inside_p90=_inside(known),
        n_telling=len(telling),
        inside_p90_telling=_inside(telling),
        median_error=median(errors) if errors else None,
    )


def _inside(outcomes: list[Outcome]) -> float | None:
    return sum(o.wait_s <= o.band.p90_s for o in outcomes) / len(outcomes) if outcomes else None
