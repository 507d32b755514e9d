"""Decides whether a failed attempt is followed by another, and when.

Before attempt n+1: U(0, min(max_backoff, initial × multiplier^(n−1))), full jitter; grown step by step up to the cap,
so that neither the number of attempts nor the multiplier can overflow. With a provider's retry_after d, the later of
that and d + U(0, min(1 s, 0.1 d)): never earlier than d, and spread after it. Every attempt counts, throttled ones too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from scheduler.policy.types import FailureClass

EXPONENT_MAX: Final = 64
RETRY_AFTER_MAX_S: Final = 3600.0
"""A provider that says 'come back later than this' gets the task dead-lettered instead."""
SPREAD_FRACTION: Final = 0.1
SPREAD_MAX_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class RetryRule:
    """How often and how patiently a task is tried. `jitter` False waits the whole backoff, for tests."""

    max_attempts: int = 3
    initial_s: float = 1.0
    multiplier: float = 2.0
    max_backoff_s: float = 60.0
    jitter: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one attempt; `retry_after_s` is the provider's own word."""

    failure_class: FailureClass
    message: str
    retry_after_s: float | None = None


class GiveUpReason(StrEnum):
    """Why no attempt follows."""

    PERMANENT = "permanent"
    ATTEMPTS_SPENT = "attempts_spent"
    PROVIDER_BILLING = "provider_billing"
    RETRY_TOO_FAR = "retry_too_far"


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again at this time."""

    at: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not try again."""

    reason: GiveUpReason


def backoff_s(rule: RetryRule, *, attempt: int, draw: float) -> float:
    """Seconds to wait after attempt number `attempt` (1 is the first) failed; `draw` is uniform in [0, 1)."""
    most = rule.initial_s
    for _ in range(min(attempt - 1, EXPONENT_MAX)):
        if most >= rule.max_backoff_s:
            break
        most *= rule.multiplier
    most = min(most, rule.max_backoff_s)
    return most * draw if rule.jitter else most


def wait_s(rule: RetryRule, *, attempt: int, retry_after_s: float | None, draw: float) -> float:
    """Backoff, never earlier than the provider asked."""
    own = backoff_s(rule, attempt=attempt, draw=draw)
    if retry_after_s is None:
        return own
    return max(own, retry_after_s + draw * min(SPREAD_MAX_S, SPREAD_FRACTION * retry_after_s))


def decide_retry(rule: RetryRule, failure: Failure, *, attempt: int, draw: float, now: float) -> Retry | GiveUp:
    """Whether attempt `attempt` (1 is the first) is followed by another."""
    match failure.failure_class:
        case FailureClass.PERMANENT:
            return GiveUp(GiveUpReason.PERMANENT)
        case FailureClass.PROVIDER_BILLING:
            return GiveUp(GiveUpReason.PROVIDER_BILLING)
        case (
            FailureClass.THROTTLED
            | FailureClass.OVERLOADED
            | FailureClass.CAPACITY
            | FailureClass.TIMEOUT
            | FailureClass.LOST
            | FailureClass.ERROR
        ):
            pass
        case never:
            assert_never(never)
    if attempt >= rule.max_attempts:
        return GiveUp(GiveUpReason.ATTEMPTS_SPENT)
    if failure.retry_after_s is not None and failure.retry_after_s > RETRY_AFTER_MAX_S:
        return GiveUp(GiveUpReason.RETRY_TOO_FAR)
    return Retry(at=now + wait_s(rule, attempt=attempt, retry_after_s=failure.retry_after_s, draw=draw))
