"""The few numbers that verdicts are made of."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence


def costs() -> tuple[tuple[str, str], ...]:
    """What a rehearsal took of the machine, once its programs have ended: how fast it was says little without that."""
    own, programs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s, programs_s = own.ru_utime + own.ru_stime, programs.ru_utime + programs.ru_stime
    one, five, _ = os.getloadavg()
    return (
        ("processor seconds", f"{programs_s:.0f} of the programs, {own_s:.0f} of their clients; the database beside"),
        ("load of the machine", f"{one:.1f}, in five minutes {five:.1f}, on {os.cpu_count()} processors"),
    )


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all have the same, 1/n when one has everything; 0 of nothing.

    R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness, 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0
