"""The few numbers that verdicts are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scheduler.replay.summary import quantile as nearest_rank


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` of them do not exceed; NaN of none."""
    return nearest_rank(sorted(values), part) if values else math.nan


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all have the same, 1/n when one has everything; 0 of nothing.

    R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness, 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0
