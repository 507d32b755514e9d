"""Decides how a pool's class stands against the wait it may have. What happened goes before what is foreseen."""

from __future__ import annotations

from enum import IntEnum

from scheduler.live.board import PoolView


class Standing(IntEnum):
    """Worst first."""

    MISSED = 0
    WILL_MISS = 1
    AT_RISK = 2
    PAUSED = 3
    UNKNOWN = 4
    KEPT = 5
    IDLE = 6
    NO_TARGET = 7


def standing(pool: PoolView, cls: str) -> Standing:
    """How this class of a pool stands. Nothing is called kept of which too little is known."""
    target_s = pool.slo.get(cls)
    if target_s is None:
        return Standing.NO_TARGET
    if pool.oldest_by_class.get(cls, 0.0) > target_s:
        return Standing.MISSED
    if pool.state == "paused":
        return Standing.PAUSED
    if pool.forecast is None:
        return Standing.UNKNOWN
    if cls not in pool.forecast:
        return Standing.UNKNOWN if cls in pool.oldest_by_class else Standing.IDLE
    p50_s, p90_s = pool.forecast[cls]
    if p50_s is None or p50_s > target_s:
        return Standing.WILL_MISS
    return Standing.AT_RISK if p90_s is None or p90_s > target_s else Standing.KEPT
