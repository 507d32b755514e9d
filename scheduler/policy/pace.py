"""Decides how a budget stands and where it goes: its state in a word, what a period comes to, when the money is gone.

Two paces, never mixed: that of the period so far, which tells what a month comes to, and that of the last minutes
(`burn`), which tells when the money runs out. Amounts in nano-dollars, times in Unix seconds. It reads no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

HOUR_S: Final = 3_600.0


class BudgetState(StrEnum):
    """How a budget stands."""

    UNLIMITED = "unlimited"
    """It has no limit."""
    OK = "ok"
    """Less is used than the first threshold at which its owner is told."""
    WARNED = "warned"
    """A threshold is passed, and something is left."""
    THROTTLED = "throttled"
    """What is not spent is reserved by attempts that run: more starts as they end for less."""
    BLOCKED = "blocked"
    """All of it is spent: work that costs money waits for another limit or the next period."""


def state_of(limit: int | None, *, spent: int, reserved: int, alert_at: Sequence[float]) -> BudgetState:
    """How a budget stands."""
    if limit is None:
        return BudgetState.UNLIMITED
    if spent >= limit:
        return BudgetState.BLOCKED
    if spent + reserved >= limit:
        return BudgetState.THROTTLED
    if alert_at and spent >= min(alert_at) * limit:
        return BudgetState.WARNED
    return BudgetState.OK


def projected(*, spent: int, reserved: int, starts_at: float, ends_at: float, now: float) -> int:
    """What a period comes to if money goes on being spent as it was since the period began."""
    gone = max(1.0, now - starts_at)
    return spent + reserved + int(spent * max(0.0, ends_at - now) / gone)


def runs_out_at(
    limit: int | None, *, spent: int, reserved: int, burn: float, ends_at: float, now: float
) -> float | None:
    """When nothing is left at the present burn (nano-dollars per hour); None: not in this period, or nothing burns.

    What is reserved counts as spent. A budget of which nothing is left runs out now.
    """
    if limit is None:
        return None
    left = limit - spent - reserved
    if left <= 0:
        return now
    if burn <= 0:
        return None
    at = now + left / burn * HOUR_S
    return at if at < ends_at else None
