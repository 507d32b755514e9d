"""The few numbers that verdicts are made of."""

from __future__ import annotations

from collections.abc import Sequence


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all have the same, 1/n when one has everything; 0 of nothing.

    R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness, 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0
