"""Decides how overloaded a pool is, in levels with hysteresis, and which new work each level refuses.

Pure: it is told the waits that are predicted and what it decided before. It must never look at a clock or count tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import PriorityClass

LEVEL_MAX: Final = 3
DEGRADES_FROM: Final = 2
"""From this level on, pools that allow it hand out attempts that are to answer only."""
CALM_FRACTION: Final = 0.8
"""Below this part of every objective a pool is calm; between this and the objective nothing moves."""
TRUSTED_S: Final = 5.0
"""After a longer silence (no leader) what was seen before it says nothing about what went on during it."""

_REFUSED: Final[tuple[frozenset[PriorityClass], ...]] = (
    frozenset(),
    frozenset({PriorityClass.LOW}),
    frozenset({PriorityClass.LOW}),
    frozenset({PriorityClass.LOW, PriorityClass.NORMAL}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a pool must be above an objective before the next level, and calm before the one below; in seconds."""

    enter_after_s: float = 5.0
    leave_after_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Overload:
    """A pool's level since when, and since when its waits are above an objective or calm (at most one of the two)."""

    level: int
    since: float
    above_since: float | None
    calm_since: float | None
    seen_at: float


def refuses(level: int, priority: PriorityClass) -> bool:
    """Whether new work of this class is refused at this level."""
    return priority in _REFUSED[level]


def degrades(level: int, *, allowed: bool) -> bool:
    """Whether attempts are handed out with the word to answer only."""
    return allowed and level >= DEGRADES_FROM


def pressure(waits_s: Mapping[PriorityClass, float], slo_s: Mapping[PriorityClass, float]) -> float:
    """The worst predicted wait as a part of its objective: 1 is exactly at it."""
    return max((waits_s.get(priority, 0.0) / limit_s for priority, limit_s in slo_s.items()), default=0.0)


def predicted_wait_s(*, oldest_s: float | None, ahead: int, started_per_s: float) -> float:
    """The wait of a task submitted now, in seconds, as far as the queue in front of it tells.

    `ahead` counts the ready tasks of its class and of more urgent ones, `oldest_s` is the age of the oldest of its
    class. With a rate of starts it is Little's law, and never less than what the head of the queue has waited in vain.
    """
    if ahead == 0:
        return 0.0
    drained_s = ahead / started_per_s if started_per_s > 0.0 else 0.0
    return max(drained_s, oldest_s or 0.0)


def next_overload(before: Overload | None, of_slo: float, *, pace: Pace, now: float) -> Overload:
    """The state that follows when the pressure is `of_slo`. One level at a time, each after its own wait."""
    if before is None:
        before = Overload(0, now, None, None, now)
    trusted = now - before.seen_at <= TRUSTED_S
    above_since = calm_since = None
    if of_slo > 1.0:
        above_since = before.above_since if trusted and before.above_since is not None else now
    elif of_slo < CALM_FRACTION:
        calm_since = before.calm_since if trusted and before.calm_since is not None else now
    if above_since is not None and now - above_since >= pace.enter_after_s and before.level < LEVEL_MAX:
        return Overload(before.level + 1, now, now, None, now)
    if calm_since is not None and now - calm_since >= pace.leave_after_s and before.level > 0:
        return Overload(before.level - 1, now, None, now, now)
    return Overload(before.level, before.since, above_since, calm_since, now)


def frozen(before: Overload | None, *, now: float) -> Overload:
    """The state of a pool that is paused: its level stays, for its waits say nothing about load."""
    level, since = (0, now) if before is None else (before.level, before.since)
    return Overload(level, since, None, None, now)
