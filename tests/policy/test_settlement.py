"""What the end of a lease does to its task and to its limits, whoever ended it."""

from __future__ import annotations

import pytest

from scheduler.policy.retry import Failure, RetryRule
from scheduler.policy.settlement import (
    THROTTLE_DEFAULT_S,
    EndedLease,
    Left,
    Verdict,
    corrections,
    decide_settlement,
    lowered,
    throttled_for_s,
)
from scheduler.policy.states import TaskState, may_move
from scheduler.policy.types import FailureClass, Outcome, ResourceId, ResourceKind, ResourceView
from tests.policy.build import bucket, semaphore

S, F = TaskState, FailureClass
RULE = RetryRule(max_attempts=3, jitter=False)
ONE, TWO = ResourceId(1), ResourceId(2)


def verdict(
    outcome: Outcome, failure: Failure | None = None, *, attempt: int = 1, cancel_requested: bool = False
) -> Verdict:
    lease = EndedLease(1, attempt, cancel_requested)
    return decide_settlement(lease, outcome, failure, RULE, draw=0.0, now=100.0)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("failure", [None, *(Failure(f, "no", 7.0) for f in FailureClass)])
@pytest.mark.parametrize("attempt", [1, 3, 9])
@pytest.mark.parametrize("cancel_requested", [False, True])
def test_every_end_of_an_attempt_is_a_legal_move(
    outcome: Outcome, failure: Failure | None, attempt: int, *, cancel_requested: bool
) -> None:
    found = verdict(outcome, failure, attempt=attempt, cancel_requested=cancel_requested)
    assert may_move(S.RUNNING, found.state)
    assert (found.due_at is not None) == (found.state is S.RETRYING)
    assert found.due_at is None or found.due_at > 100.0
    if cancel_requested:
        assert found.state is S.CANCELLED, "a cancellation that was asked for stands"


def test_success_and_cancellation_end_a_task() -> None:
    assert verdict(Outcome.SUCCEEDED) == Verdict(S.SUCCEEDED)
    assert verdict(Outcome.CANCELLED) == Verdict(S.CANCELLED)


def test_a_late_success_does_not_undo_a_cancellation() -> None:
    assert verdict(Outcome.SUCCEEDED, cancel_requested=True) == Verdict(S.CANCELLED)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST])
def test_an_attempt_that_failed_without_a_word_is_tried_again_until_attempts_are_spent(outcome: Outcome) -> None:
    assert verdict(outcome) == Verdict(S.RETRYING, due_at=101.0)
    assert verdict(outcome, attempt=3) == Verdict(S.DEAD_LETTERED)


def test_a_permanent_failure_fails_the_task_and_a_billing_one_dead_letters_it() -> None:
    assert verdict(Outcome.FAILED, Failure(F.PERMANENT, "no")) == Verdict(S.FAILED)
    assert verdict(Outcome.FAILED, Failure(F.PROVIDER_BILLING, "no")) == Verdict(S.DEAD_LETTERED)
    assert verdict(Outcome.FAILED, Failure(F.THROTTLED, "no", 3_601.0)) == Verdict(S.DEAD_LETTERED)


def test_a_hand_back_costs_no_attempt() -> None:
    assert verdict(Outcome.RELEASED, attempt=3) == Verdict(S.READY, spent=False)
    later = Failure(F.CAPACITY, "not now", 30.0)
    assert verdict(Outcome.RELEASED, later, attempt=3) == Verdict(S.RETRYING, due_at=130.0, spent=False)


def test_only_a_throttled_answer_closes_the_limit() -> None:
    assert throttled_for_s(Failure(F.THROTTLED, "slow", 20.0)) == 20.0
    assert throttled_for_s(Failure(F.THROTTLED, "slow")) == THROTTLE_DEFAULT_S
    assert throttled_for_s(Failure(F.OVERLOADED, "busy", 20.0)) is None


def test_buckets_are_corrected_by_what_was_really_used() -> None:
    known = {ONE: bucket(), TWO: bucket()}
    assert corrections([ONE, TWO], [10.0, 5.0], {ONE: 4.0, TWO: 9.0}, known) == {ONE: 6.0, TWO: -4.0}


def test_what_was_not_measured_or_not_drawn_on_is_not_corrected() -> None:
    known = {ONE: bucket(), TWO: semaphore()}
    assert corrections([ONE], [10.0], {ONE: 10.0, TWO: 3.0}, known) == {}
    assert corrections([ONE, TWO], [10.0, 1.0], {TWO: 2.0}, known) == {}


def told(
    amount: float, *, age_s: float = 0.0, level: float = 50.0, kind: ResourceKind = ResourceKind.TOKEN_BUCKET
) -> float | None:
    bucket = ResourceView(ResourceId(1), kind, level, 0.0, rate=2.0, burst=100.0, permits=100, margin=0.0)
    return lowered(bucket, Left(amount, age_s), now=0.0)


def test_a_provider_s_word_lowers_a_level_and_never_raises_one() -> None:
    assert told(20.0) == 20.0
    assert told(50.0) is None
    assert told(80.0) is None
    assert told(0.0, level=-5.0) is None


def test_what_has_refilled_since_is_added_to_it() -> None:
    assert told(20.0, age_s=10.0) == 40.0
    assert told(20.0, age_s=15.0) is None
    assert told(20.0, age_s=-5.0) == 20.0


def test_it_says_nothing_of_a_semaphore() -> None:
    assert told(1.0, kind=ResourceKind.SEMAPHORE) is None
