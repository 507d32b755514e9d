"""Decides what the end of a lease does to its task and to the limits it drew on.

It never asks who ended the lease: a report, a timeout, a cancellation and the reaper are the same here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, assert_never

from scheduler.policy.limits import effective_rate, level_now
from scheduler.policy.retry import Failure, GiveUp, GiveUpReason, Retry, RetryRule, decide_retry
from scheduler.policy.states import TaskState
from scheduler.policy.types import FailureClass, Outcome, ResourceId, ResourceKind, ResourceView

CANCEL_GRACE_S: Final = 10.0
"""A running task that does not acknowledge its cancellation within this is cancelled all the same."""

THROTTLE_DEFAULT_S: Final = 1.0
"""How long a throttled limit is left alone when the provider named no time."""


class Left(NamedTuple):
    """What a provider said was left of a limit when a request came to its door, `age_s` seconds ago."""

    amount: float
    age_s: float


class EndedLease(NamedTuple):
    """A lease that just ended: which attempt of which task it was, and whether it had been told to stop."""

    task: int
    attempt: int
    cancel_requested: bool


class Verdict(NamedTuple):
    """The task's next state. `spent` False gives the attempt back; `due_at` is set for `retrying`."""

    state: TaskState
    due_at: float | None = None
    spent: bool = True


def decide_settlement(
    lease: EndedLease, outcome: Outcome, failure: Failure | None, rule: RetryRule, *, draw: float, now: float
) -> Verdict:
    """The state that follows an attempt. A cancellation that was asked for stands, whatever the attempt came to.

    `failure` is given for the outcomes that have one (failed, timed out, lost, released with a time to come back).
    """
    if lease.cancel_requested and outcome is not Outcome.SUCCEEDED:
        return Verdict(TaskState.CANCELLED)
    match outcome:
        case Outcome.SUCCEEDED:
            return Verdict(TaskState.CANCELLED if lease.cancel_requested else TaskState.SUCCEEDED)
        case Outcome.CANCELLED:
            return Verdict(TaskState.CANCELLED)
        case Outcome.RELEASED:
            again_s = failure.retry_after_s if failure is not None else None
            if again_s is None:
                return Verdict(TaskState.READY, spent=False)
            return Verdict(TaskState.RETRYING, due_at=now + again_s, spent=False)
        case Outcome.FAILED | Outcome.TIMED_OUT | Outcome.LOST:
            known = failure or Failure(_class_of(outcome), "no message")
            return _after_failure(lease, known, rule, draw=draw, now=now)
        case never:
            assert_never(never)


def _class_of(outcome: Outcome) -> FailureClass:
    return {Outcome.TIMED_OUT: FailureClass.TIMEOUT, Outcome.LOST: FailureClass.LOST}.get(outcome, FailureClass.ERROR)


def _after_failure(lease: EndedLease, failure: Failure, rule: RetryRule, *, draw: float, now: float) -> Verdict:
    verdict = decide_retry(rule, failure, attempt=lease.attempt, draw=draw, now=now)
    match verdict:
        case Retry(at=at):
            return Verdict(TaskState.RETRYING, due_at=at)
        case GiveUp(reason=GiveUpReason.PERMANENT):
            return Verdict(TaskState.FAILED)
        case GiveUp():
            return Verdict(TaskState.DEAD_LETTERED)
        case never:
            assert_never(never)


def throttled_for_s(failure: Failure) -> float | None:
    """How long a provider's answer closes the limit itself, not just the task; None when it does not."""
    if failure.failure_class is not FailureClass.THROTTLED:
        return None
    return THROTTLE_DEFAULT_S if failure.retry_after_s is None else failure.retry_after_s


def lowered(resource: ResourceView, told: Left, *, now: float) -> float | None:
    """The level that a provider's word lowers a bucket to, where it has less than we believe; else None.

    What has refilled since is added to its word. What others of us have taken since is not, since it is gone from our
    level already: the word comes too late to raise anything.
    """
    if resource.kind is not ResourceKind.TOKEN_BUCKET:
        return None
    level = told.amount + effective_rate(resource) * max(0.0, told.age_s)
    return level if level < level_now(resource, now=now) else None


def corrections(
    resources: Sequence[ResourceId],
    amounts: Sequence[float],
    actual: Mapping[ResourceId, float],
    known: Mapping[ResourceId, ResourceView],
) -> dict[ResourceId, float]:
    """What to add to each bucket's level once the actual amounts are known: reserved − actual.

    Semaphores need none: their holds end with the lease. Resources that the lease did not draw on are ignored.
    """
    deltas: dict[ResourceId, float] = {}
    for resource, reserved in zip(resources, amounts, strict=True):
        used = actual.get(resource)
        if used is None or known[resource].kind is not ResourceKind.TOKEN_BUCKET:
            continue
        if used != reserved:
            deltas[resource] = reserved - used
    return deltas
