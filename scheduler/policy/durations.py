"""Learns how long attempts take: a histogram of logarithmic bins whose old entries fade.

A bin is 10 % wide, so a quantile is off by at most 5 %, and an hour and a millisecond fit in 160 bins whatever came in
between. It keeps weights, never samples, so it is a row of constant size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp, floor, inf, log, sqrt
from typing import Final

RATIO: Final = 1.1
SHORTEST_S: Final = 0.001
LONGEST_S: Final = 7_200.0
HALF_LIFE_S: Final = 600.0
WEIGHT_MIN: Final = 1e-3
"""A bin that faded below this is forgotten."""
_LOG_RATIO: Final = log(RATIO)


@dataclass(slots=True)
class Durations:
    """Weights by bin, as of `at`. `bins` maps the number of a bin to its weight."""

    bins: dict[int, float] = field(default_factory=dict)
    at: float = 0.0

    @property
    def weight(self) -> float:
        """How many recent attempts this knows of, old ones counted less."""
        return sum(self.bins.values())

    @property
    def spread(self) -> float:
        """How far apart they are: the standard deviation of their logarithms. Infinite when nothing is known."""
        weight = self.weight
        if weight <= 0.0:
            return inf
        mean = sum(bin_ * w for bin_, w in self.bins.items()) / weight
        return _LOG_RATIO * sqrt(sum(w * (bin_ - mean) ** 2 for bin_, w in self.bins.items()) / weight)

    def learn(self, durations_s: Iterable[float], *, now: float) -> None:
        """Add attempts that ended; what was known fades by half in ten minutes, not at all if the clock went back."""
        kept = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE_S)
        self.bins = {bin_: weight * kept for bin_, weight in self.bins.items() if weight * kept >= WEIGHT_MIN}
        self.at = now
        for duration_s in durations_s:
            bin_ = _bin(duration_s)
            self.bins[bin_] = self.bins.get(bin_, 0.0) + 1.0

    def quantile(self, part: float, *, longer_than_s: float = 0.0) -> float | None:
        """The duration that this part of the attempts stays below, among those that take longer than `longer_than_s`.

        None when nothing is known; when nothing ever took that long, a tenth longer than so far.
        """
        if not self.bins:
            return None
        first = _bin(longer_than_s) if longer_than_s > SHORTEST_S else -1
        bins = sorted((bin_, weight) for bin_, weight in self.bins.items() if bin_ >= first)
        if not bins:
            return longer_than_s * RATIO
        left = part * sum(weight for _, weight in bins)
        place = 0
        while place < len(bins) - 1 and left > bins[place][1]:
            left -= bins[place][1]
            place += 1
        bin_, weight = bins[place]
        return max(longer_than_s, _duration_s(bin_ + min(1.0, left / weight)))

    def drawing(self) -> Drawing | None:
        """To draw from quickly; None when nothing is known."""
        return Drawing(self.bins) if self.bins else None

    def as_json(self) -> dict[str, object]:
        """The row that `from_json` reads."""
        return {"at": self.at, "bins": [[bin_, round(weight, 4)] for bin_, weight in sorted(self.bins.items())]}

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> Durations:
        """What `as_json` wrote."""
        at, bins = row["at"], row["bins"]
        assert isinstance(at, float | int)  # noqa: S101 - we wrote it
        assert isinstance(bins, list)  # noqa: S101 - we wrote it
        return cls({int(bin_): float(weight) for bin_, weight in bins}, float(at))


class Drawing:
    """A histogram as it is now, to draw many durations from.

    As a whole, to the last bin: a few evenly spaced quantiles leave the longest out, and of durations that differ much
    those few make a good part of all work.
    """

    def __init__(self, bins: Mapping[int, float]) -> None:
        ordered = sorted(bins.items())
        self._bins = [bin_ for bin_, _ in ordered]
        self._weights = [weight for _, weight in ordered]
        self._reached = list(accumulate(self._weights))
        self.mean_s = sum(_mean_s(bin_) * weight for bin_, weight in ordered) / self._reached[-1]

    def at(self, part: float) -> float:
        """The duration that this part of the attempts (0 to 1) stays below."""
        left = part * self._reached[-1]
        n = min(bisect_left(self._reached, left), len(self._bins) - 1)
        beyond = self._reached[n] - left
        return _duration_s(self._bins[n] + 1.0 - beyond / self._weights[n])


def _bin(duration_s: float) -> int:
    return floor(log(min(max(duration_s, SHORTEST_S), LONGEST_S) / SHORTEST_S) / _LOG_RATIO)


def _mean_s(bin_: int) -> float:
    """The mean of durations that are spread over a bin by their logarithm."""
    return _duration_s(bin_) * (RATIO - 1.0) / _LOG_RATIO


def _duration_s(place: float) -> float:
    return SHORTEST_S * exp(place * _LOG_RATIO)
