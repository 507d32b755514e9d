"""Holds forecasts to account: learns from how they came out, and reports how good they were.

A run of the planner knows limits, order and backlog well, and its own errors not at all. So its middle is moved by as
much of the median error as the last waits prove of the same pool and class whose forecasts were about as long, and its
band is made as wide as nine in ten of them needed, whatever the distribution of the errors is (split conformal
prediction over a moving window, after Vovk et al., localised by the size of the forecast). Errors are measured
against what the run said, not what was published: an outcome comes a whole wait late, and must not be answered
repeatedly meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, inf, log, sqrt
from statistics import median
from typing import Final, NamedTuple

HORIZON_S: Final = 900.0
"""Nobody looks further ahead than this."""
INSIDE_WANTED: Final = 0.9
"""Of the waits that were forecast alike. Where many are nothing, which no bound can miss, more are inside."""
TELLING_S: Final = 1.0
"""Waits up to this are not counted for the error."""
KEPT: Final = 64
"""Lessons about forecasts of about one size. However many waits are next to none, those about long ones are kept."""
LIKE_FOR_MIDDLE: Final = 32
LIKE_FOR_WIDTH: Final = (48, 96)
"""A correction is taken from so many lessons: those whose forecast was most alike. A quantile takes more of them than a
median: half of what there is, within these."""
PLACES_S: Final = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Forecasts for which corrections are kept; between two, what lies between."""
DUST_S: Final = 0.25
"""Added before waits are compared as ratios: no clock and no poll is exact."""
BIAS_PRIOR: Final = ((0.0,) * 8, 4)
STRETCH_PRIOR: Final = ((1.0, 1.5, 2.0, 2.5, 3.0), 4)
"""A track begins as if it had seen waits with these lessons; so many real ones take the place of one, the widest last.
Five runs by themselves cover 77 % of what comes, and the first waits err alike, since they are those of one time: a
band is wide until twenty have told how wide it must be."""
SPREAD_PART: Final = 0.1
"""The unit of the band: its own spread, this part of the wait, and the dust."""


SURELY: Final = 2.0
"""Standard deviations. Waits of the same time err alike, so a few of them prove little."""
GRAIN: Final = 0.01
"""Forecasts are told to about this part: nobody reads more digits. Where everything is determined, as in order of
arrival behind a limit, what is left of the error is that of rounding, and so nine in ten has a meaning there too."""


def _size(wait_s: float) -> float:
    return log(wait_s + DUST_S)


def _told(wait_s: float) -> float:
    """A wait as it is told; nothing is nothing."""
    if wait_s == inf:
        return inf
    steps = round((_size(wait_s) - _size(0.0)) / GRAIN)
    return max(0.0, exp(_size(0.0) + steps * GRAIN) - DUST_S) if steps else 0.0


_SIZES: Final = tuple(_size(place) for place in PLACES_S)


class Band(NamedTuple):
    """A wait: half of the tasks like this wait at most `p50_s`, nine in ten `p90_s`. Infinite: cannot be told."""

    p50_s: float
    p90_s: float


def rounded(raw: Band) -> Band:
    """A band as it is told."""
    return Band(_told(raw.p50_s), _told(raw.p90_s))


class Lesson(NamedTuple):
    """A forecast that came out: how long it was (logarithmic), the logarithm of wait ÷ forecast, both with dust.

    `need` is how many units wide the band had to be to cover the wait.
    """

    size: float
    bias: float
    need: float


class Correction(NamedTuple):
    """What to do with forecasts of a size: move the middle by `bias`, make the band `stretch` units wide."""

    size: float
    bias: float
    stretch: float


@dataclass(slots=True)
class Track:
    """What the record of one pool and class teaches about the next forecast.

    Errors of short waits say nothing about long ones, in seconds or in parts: so a forecast is corrected by those of
    the record that are most like it in length.
    """

    by_size: tuple[deque[Lesson], ...] = field(default_factory=lambda: tuple(deque(maxlen=KEPT) for _ in PLACES_S))
    corrections: tuple[Correction, ...] = ()
    """What the lessons come to; empty: not yet concluded."""

    @classmethod
    def of(cls, lessons: Iterable[Iterable[float]]) -> Track:
        """A track that goes on from what another had seen."""
        track = cls()
        for each in lessons:
            track._keep(Lesson(*each))
        return track

    @classmethod
    def said(cls, corrections: Iterable[Iterable[float]]) -> Track:
        """A track that only repeats what another concluded."""
        return cls(corrections=tuple(Correction(*each) for each in corrections))

    @property
    def lessons(self) -> list[Lesson]:
        """What was seen, by size, oldest first."""
        return [lesson for cell in self.by_size for lesson in cell]

    def concluded(self) -> tuple[Correction, ...]:
        """Take middles and widths from what was seen."""
        if not self.corrections:
            lessons = self.lessons
            self.corrections = tuple(_conclude(lessons, size) for size in _SIZES)
        return self.corrections

    def corrected(self, raw: Band) -> Band:
        """The band to publish for one that runs of the planner gave."""
        if raw.p50_s == inf:
            return raw
        raw = rounded(raw)
        bias, stretch = _between(self.concluded(), _size(raw.p50_s))
        p50_s = max(0.0, (raw.p50_s + DUST_S) * exp(bias) - DUST_S)
        return Band(p50_s, max(p50_s, raw.p50_s + stretch * _unit_s(raw)))

    def learn(self, raw: Band, wait_s: float) -> None:
        """Compare what runs of the planner gave with what happened."""
        if raw.p50_s == inf:
            return
        raw = rounded(raw)
        bias = log((wait_s + DUST_S) / (raw.p50_s + DUST_S))
        self._keep(Lesson(_size(raw.p50_s), bias, (wait_s - raw.p50_s) / _unit_s(raw)))

    def _keep(self, lesson: Lesson) -> None:
        nearest = min(range(len(_SIZES)), key=lambda n: abs(_SIZES[n] - lesson.size))
        self.by_size[nearest].append(lesson)
        self.corrections = ()


def _conclude(lessons: Sequence[Lesson], size: float) -> Correction:
    like = sorted(lessons, key=lambda lesson: abs(lesson.size - size))
    least, most = LIKE_FOR_WIDTH
    wide = like[: min(most, max(least, len(like) // 2))]
    biases = [lesson.bias for lesson in like[:LIKE_FOR_MIDDLE]] + _prior(BIAS_PRIOR, len(like))
    needs = sorted([lesson.need for lesson in wide] + _prior(STRETCH_PRIOR, len(wide)))
    return Correction(size, _proven(biases), needs[min(len(needs) - 1, ceil(INSIDE_WANTED * (len(needs) + 1)) - 1)])


def _proven(biases: list[float]) -> float:
    """As much of a bias as the record proves: the end next to zero of where the true median surely is (sign test)."""
    ordered = sorted(biases)
    aside = SURELY * sqrt(len(ordered)) / 2.0
    low, high = (ordered[min(len(ordered) - 1, max(0, round((len(ordered) - 1) / 2 + by)))] for by in (-aside, aside))
    return low if low > 0.0 else min(0.0, high)


def _prior(prior: tuple[tuple[float, ...], int], seen: int) -> list[float]:
    lessons, each = prior
    return list(lessons[seen // each :])


def _between(corrections: tuple[Correction, ...], size: float) -> tuple[float, float]:
    n = min(max(1, bisect_left(corrections, size, key=lambda c: c.size)), len(corrections) - 1)
    low, high = corrections[n - 1], corrections[n]
    part = min(1.0, (size - low.size) / (high.size - low.size))
    return low.bias + (high.bias - low.bias) * part, low.stretch + (high.stretch - low.stretch) * part


def _unit_s(raw: Band) -> float:
    return max(min(raw.p90_s, raw.p50_s + HORIZON_S) - raw.p50_s, 0.0) + SPREAD_PART * raw.p50_s + DUST_S


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
