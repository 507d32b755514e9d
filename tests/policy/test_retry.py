"""A failed attempt is followed by another in time, in bounds, and never too early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.retry import (
    Failure,
    GiveUp,
    GiveUpReason,
    Retry,
    RetryRule,
    backoff_s,
    decide_retry,
    wait_s,
)
from scheduler.policy.types import FailureClass

RETRYABLE = sorted(set(FailureClass) - {FailureClass.PERMANENT, FailureClass.PROVIDER_BILLING})
draws = st.floats(0.0, 1.0, exclude_max=True)
rules = st.builds(
    RetryRule,
    max_attempts=st.integers(1, 100),
    initial_s=st.floats(0.0, 86_400.0),
    multiplier=st.floats(1.0, 1e9),
    max_backoff_s=st.floats(0.0, 86_400.0),
    jitter=st.booleans(),
)


def failure(failure_class: FailureClass = FailureClass.ERROR, retry_after_s: float | None = None) -> Failure:
    return Failure(failure_class, "no", retry_after_s)


def test_the_backoff_doubles_from_its_start_up_to_its_cap() -> None:
    rule = RetryRule(jitter=False)
    waits = [backoff_s(rule, attempt=n, draw=0.5) for n in range(1, 9)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@given(rule=rules, attempt=st.integers(1, 10**6), draw=draws)
def test_no_number_of_attempts_overflows_the_backoff(rule: RetryRule, attempt: int, draw: float) -> None:
    assert 0.0 <= backoff_s(rule, attempt=attempt, draw=draw) <= rule.max_backoff_s


@given(rule=rules, attempt=st.integers(1, 100), draw=draws, after_s=st.floats(0.0, 3_600.0))
def test_no_retry_comes_before_the_time_the_provider_named(
    rule: RetryRule, attempt: int, draw: float, after_s: float
) -> None:
    waited = wait_s(rule, attempt=attempt, retry_after_s=after_s, draw=draw)
    assert waited >= after_s
    assert waited <= max(rule.max_backoff_s, after_s + min(1.0, after_s / 10.0))


def test_retries_after_the_same_answer_are_spread_not_stampeding() -> None:
    rule = RetryRule(initial_s=0.1)
    waits = [wait_s(rule, attempt=1, retry_after_s=1.0, draw=d / 100) for d in range(100)]
    assert min(waits) >= 1.0
    assert max(waits) <= 1.1
    assert len({round(w, 3) for w in waits}) > 50


@given(rule=rules, draw=draws, failure_class=st.sampled_from(FailureClass), after_s=st.none() | st.floats(0.0, 1e6))
def test_attempts_never_exceed_their_maximum(
    rule: RetryRule, draw: float, failure_class: FailureClass, after_s: float | None
) -> None:
    attempt = 1
    while isinstance(decide_retry(rule, failure(failure_class, after_s), attempt=attempt, draw=draw, now=0.0), Retry):
        attempt += 1
    assert attempt <= rule.max_attempts


@pytest.mark.parametrize("failure_class", RETRYABLE)
def test_what_may_pass_is_tried_again(failure_class: FailureClass) -> None:
    rule = RetryRule(jitter=False)
    assert decide_retry(rule, failure(failure_class), attempt=2, draw=0.0, now=10.0) == Retry(12.0)
    spent = decide_retry(rule, failure(failure_class), attempt=3, draw=0.0, now=10.0)
    assert spent == GiveUp(GiveUpReason.ATTEMPTS_SPENT)


def test_what_cannot_pass_is_not_tried_again() -> None:
    rule = RetryRule()
    for failure_class, reason in [
        (FailureClass.PERMANENT, GiveUpReason.PERMANENT),
        (FailureClass.PROVIDER_BILLING, GiveUpReason.PROVIDER_BILLING),
    ]:
        assert decide_retry(rule, failure(failure_class), attempt=1, draw=0.0, now=0.0) == GiveUp(reason)


@pytest.mark.parametrize("after_s", [3_600.1, 1e9, float("inf")])
def test_a_provider_that_wants_more_than_an_hour_ends_the_task(after_s: float) -> None:
    verdict = decide_retry(RetryRule(), failure(retry_after_s=after_s), attempt=1, draw=0.0, now=0.0)
    assert verdict == GiveUp(GiveUpReason.RETRY_TOO_FAR)
