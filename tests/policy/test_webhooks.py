"""Which events a webhook may ask for, and what follows a delivery that failed."""

from __future__ import annotations

import pytest

from scheduler.policy.webhooks import (
    EVENT_NAMES,
    GIVE_UP_AFTER_S,
    RETRY_MAX_S,
    SwitchOff,
    TryAgain,
    decide_after_failure,
    faults_in_webhook,
    wants,
)


def after(
    failures: int, *, draw: float = 0.0, status: int | None = 500, retry_after_s: float | None = None
) -> TryAgain | SwitchOff:
    return decide_after_failure(
        failures=failures, failing_for_s=1.0, status=status, retry_after_s=retry_after_s, draw=draw
    )


def test_the_wait_doubles_up_to_an_hour_with_jitter() -> None:
    assert [after(n) for n in (1, 2, 3)] == [TryAgain(5.0), TryAgain(10.0), TryAgain(20.0)]
    soon = after(1, draw=0.5)
    assert soon == TryAgain(3.75)
    assert after(50) == TryAgain(RETRY_MAX_S)
    assert after(10**6) == TryAgain(RETRY_MAX_S)


def test_the_receiver_s_own_word_counts_up_to_an_hour() -> None:
    assert after(1, retry_after_s=60.0) == TryAgain(60.0)
    assert after(3, retry_after_s=1.0) == TryAgain(20.0)
    assert after(1, retry_after_s=10**9) == TryAgain(RETRY_MAX_S)


def test_it_is_given_up_after_days_or_when_the_receiver_is_gone() -> None:
    gone = after(1, status=410)
    assert isinstance(gone, SwitchOff)
    assert "410" in gone.why
    long = decide_after_failure(failures=90, failing_for_s=GIVE_UP_AFTER_S, status=None, retry_after_s=None, draw=0.0)
    assert long == SwitchOff("it has failed for 72 hours")


def test_a_webhook_gets_what_it_asked_for() -> None:
    assert wants(["task.failed"], "task.failed")
    assert not wants(["task.failed"], "task.succeeded")
    assert wants(["alert"], "alert.budget")
    assert not wants(["alert"], "alerting")
    assert not wants(["task.failed"], "alert.budget")


@pytest.mark.parametrize(
    ("url", "events", "said"),
    [
        ("http://10.0.0.1/", ["alert"], "not a public address"),
        ("https://x.example/", [], "at least one event"),
        ("https://x.example/", ["task.done"], "no event 'task.done'"),
    ],
)
def test_one_that_cannot_work_is_refused(url: str, events: list[str], said: str) -> None:
    (fault,) = faults_in_webhook(url, events, ())
    assert said in fault.msg


def test_all_that_there_is_may_be_asked_for() -> None:
    assert faults_in_webhook("https://x.example/", EVENT_NAMES, ()) == ()
