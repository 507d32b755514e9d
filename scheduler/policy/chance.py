"""Decides how likely a wait is to stay within a target, from the two quantiles that were foretold.

Waits are taken to be log-normal between and beyond their quantiles, the usual shape of times in queues: one that is
foretold as p50 and p90 has the spread s = ln(p90 / p50) / z90, and stays below t with probability Φ(ln(t / p50) / s).
"""

from __future__ import annotations

from math import inf, log
from statistics import NormalDist

from scheduler.policy.calibration import Band

_NORMAL = NormalDist()
_Z90 = _NORMAL.inv_cdf(0.9)
_LEAST_S = 0.05
"""Shorter waits are as good as none: below it quantiles say nothing of their ratio."""
_SPREAD_MIN = 0.05
"""A foresight so narrow claims more than it knows."""


def chance_within(band: Band, target_s: float) -> float:
    """The probability that a wait foretold by `band` is at most `target_s` (seconds).

    A quantile beyond what is foretold is infinite: then only what is known for sure is answered, 0 or one half.
    """
    middle = max(band.p50_s, _LEAST_S)
    if middle > target_s and inf in {band.p50_s, band.p90_s}:
        return 0.0
    if band.p90_s == inf:
        return 0.5
    spread = max(log(max(band.p90_s, middle) / middle) / _Z90, _SPREAD_MIN)
    return _NORMAL.cdf(log(max(target_s, _LEAST_S) / middle) / spread)
