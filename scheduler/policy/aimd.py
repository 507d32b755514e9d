"""Decides which part of a declared limit is used after a provider refused: less at once, more again little by little.

Additive increase, multiplicative decrease (Chiu and Jain, 1989): × 0.7 at most once per round trip, + 0.05 for each
10 s in which calls succeeded and the limit was used up. One that nobody wanted to its end has shown nothing, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

CUT: Final = 0.7
FACTOR_MIN: Final = 0.1
STEP: Final = 0.05
STEP_S: Final = 10.0
STEPS_MAX: Final = 3
"""Steps up at once at most: after a long silence the provider is asked again, not stormed."""
AT_LIMIT_FRACTION: Final = 0.8
"""A limit counts as used up when this part of what it gave was taken."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The part of a limit in use. `cut_at`: the last decrease; `since`: last change or look; `taken`: what by then."""

    factor: float = 1.0
    cut_at: float | None = None
    since: float | None = None
    taken: float = 0.0


def after_refusal(pace: Pace, *, started_at: float, taken: float, now: float) -> Pace:
    """A call that began then was refused for being one too many.

    One that began before the last decrease tells nothing new: it went out at the pace of before.
    """
    if pace.cut_at is not None and started_at < pace.cut_at:
        return pace
    return Pace(max(FACTOR_MIN, pace.factor * CUT), cut_at=now, since=now, taken=taken)


def after_success(pace: Pace, *, taken: float, gives_per_s: float, now: float) -> Pace:
    """Calls succeeded; `taken` in all by now of a limit that gives so much per second at this pace."""
    if pace.factor >= 1.0 or pace.since is None:
        return pace
    elapsed_s = now - pace.since
    if elapsed_s < STEP_S:
        return pace
    if taken - pace.taken < AT_LIMIT_FRACTION * gives_per_s * elapsed_s:
        return replace(pace, since=now, taken=taken)
    steps = min(STEPS_MAX, int(elapsed_s // STEP_S))
    return replace(pace, factor=min(1.0, pace.factor + STEP * steps), since=now, taken=taken)
