"""Decides when a limit's provider counts as down, for how long nobody asks it, and what one probe then says.

Closed: calls go. Open: none goes until a time. Half-open, from that time on: exactly one call goes, the probe; it is a
lease, so whatever ends the lease ends the probe. Its answer closes the breaker or opens it again for longer.

Calls count only while something fails: a window begins with the first failure, so a healthy provider costs nothing. A
window is as long as the slowest call in it at least, hence no shorter than the p99 latency; the one before it counts
too. Calls that began before the breaker last changed are old news and count for nothing. It never reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, assert_never

from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome

WINDOW_MIN_S: Final = 30.0
CALLS_MIN: Final = 10
FAILED_FRACTION: Final = 0.5
OPEN_MIN_S: Final = 10.0
OPEN_MAX_S: Final = 120.0
RETRY_AFTER_MAX_S: Final = 3600.0
"""A provider that is down cannot keep itself closed for longer than this by one word."""


class BreakerState(StrEnum):
    """What the breaker lets through: everything, nothing, or one call to see."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is remembered of one limit's calls. `open_until` None: closed. `opens` in a row, each longer than the last.

    `changed_at` is when it last opened or closed. `good` and `bad` calls of the window that began at `window_at` (None:
    nothing fails), `good_before` and `bad_before` of the one before; `slowest_s` is the longest of all these.
    """

    open_until: float | None = None
    opens: int = 0
    probe: LeaseId | None = None
    changed_at: float | None = None
    window_at: float | None = None
    good: int = 0
    bad: int = 0
    good_before: int = 0
    bad_before: int = 0
    slowest_s: float = 0.0

    @property
    def calls(self) -> int:
        """Calls that count."""
        return self.good + self.bad + self.good_before + self.bad_before

    @property
    def failed(self) -> int:
        """Of these, those that failed."""
        return self.bad + self.bad_before


class Call(NamedTuple):
    """An attempt that ended: what it says of its provider (None: nothing), when it began and how long it took."""

    lease: LeaseId
    good: bool | None
    started_at: float
    took_s: float
    retry_after_s: float | None = None


def state_of(open_until: float | None, *, now: float) -> BreakerState:
    """The state of a breaker that is open until then."""
    if open_until is None:
        return BreakerState.CLOSED
    return BreakerState.OPEN if now < open_until else BreakerState.HALF_OPEN


def verdict_of(outcome: Outcome, failure: Failure | None) -> bool | None:
    """Whether an attempt's end shows its provider at work (True), down (False), or neither.

    Being throttled is neither: a provider that refuses politely is up, but nothing is known about the next call. So is
    whatever happened on our own side: a lost worker, a handler's fault, a cancellation. A refusal for good is one.
    """
    if outcome is Outcome.SUCCEEDED:
        return True
    if outcome is Outcome.TIMED_OUT:
        return False
    if outcome is not Outcome.FAILED or failure is None:
        return None
    match failure.failure_class:
        case FailureClass.OVERLOADED | FailureClass.TIMEOUT:
            return False
        case FailureClass.PERMANENT:
            return True
        case (
            FailureClass.THROTTLED
            | FailureClass.CAPACITY
            | FailureClass.LOST
            | FailureClass.ERROR
            | FailureClass.PROVIDER_BILLING
        ):
            return None
        case never:
            assert_never(never)


def after_calls(breaker: Breaker, calls: Sequence[Call], *, now: float) -> Breaker:
    """The breaker after these calls ended, in whatever order."""
    if breaker.open_until is not None:
        probes = [call for call in calls if call.lease == breaker.probe]
        return _after_probe(breaker, probes[0], now=now) if probes else breaker
    known = breaker.changed_at
    counted = [c for c in calls if c.good is not None and (known is None or c.started_at >= known)]
    if not counted:
        return breaker
    breaker = _counted(_rolled(breaker, now=now), counted, now=now)
    if breaker.calls >= CALLS_MIN and breaker.failed >= FAILED_FRACTION * breaker.calls:
        return _opened(breaker, counted, now=now)
    return breaker


def as_new(breaker: Breaker, *, now: float) -> Breaker:
    """Closed by hand: nothing counts that began before now."""
    return Breaker(changed_at=now, slowest_s=breaker.slowest_s)


def _after_probe(breaker: Breaker, probe: Call, *, now: float) -> Breaker:
    if probe.good is None:
        return replace(breaker, probe=None)
    return as_new(breaker, now=now) if probe.good else _opened(breaker, [probe], now=now)


def _opened(breaker: Breaker, calls: Sequence[Call], *, now: float) -> Breaker:
    own_s = min(OPEN_MAX_S, OPEN_MIN_S * 2.0 ** min(breaker.opens, 10))
    asked_s = max((c.retry_after_s or 0.0 for c in calls if c.good is False), default=0.0)
    until = now + max(own_s, min(asked_s, RETRY_AFTER_MAX_S))
    return replace(breaker, open_until=until, opens=breaker.opens + 1, probe=None, changed_at=now)


def _rolled(breaker: Breaker, *, now: float) -> Breaker:
    """With a window that has ended as the one before; two that have ended are forgotten."""
    if breaker.window_at is None:
        return breaker
    length_s = max(WINDOW_MIN_S, breaker.slowest_s)
    age_s = now - breaker.window_at
    if age_s < length_s:
        return breaker
    if age_s >= 2.0 * length_s or breaker.bad == 0:
        return Breaker(changed_at=breaker.changed_at)
    return replace(
        breaker,
        window_at=breaker.window_at + length_s,
        good=0,
        bad=0,
        good_before=breaker.good,
        bad_before=breaker.bad,
    )


def _counted(breaker: Breaker, calls: Sequence[Call], *, now: float) -> Breaker:
    bad = sum(call.good is False for call in calls)
    if breaker.window_at is None:
        if not bad:
            return breaker
        breaker = replace(breaker, window_at=now)
    slowest_s = max(breaker.slowest_s, *(call.took_s for call in calls))
    return replace(breaker, good=breaker.good + len(calls) - bad, bad=breaker.bad + bad, slowest_s=slowest_s)
