"""A submission becomes exactly one row, or is refused with a code and the field to change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import Refused
from scheduler.policy.admission import (
    ATTEMPTS_MAX,
    RESOURCES_PER_TASK_MAX,
    START_AHEAD_MAX_S,
    Admitted,
    PoolTerms,
    RetrySettings,
    Submission,
    admit,
)
from scheduler.policy.states import TaskState
from scheduler.policy.types import PoolId, ResourceId, ResourceView
from tests.policy.build import bucket, semaphore

NOW = 1_000.0
POOL = PoolTerms(PoolId(7), max_attempts=3, duration_default_s=2.0)
KNOWN = {
    "gpu": replace(semaphore(permits=4), id=ResourceId(9)),
    "api": replace(bucket(burst=100.0, margin=0.02), id=ResourceId(2)),
}


def taken(submission: Submission, resources: dict[str, ResourceView] = KNOWN) -> Admitted:
    return admit(submission, pool=POOL, resources=resources, now=NOW)


def refusal(submission: Submission, pool: PoolTerms | None = POOL) -> tuple[str, tuple[str | int, ...]]:
    with pytest.raises(Refused) as caught:
        admit(submission, pool=pool, resources=KNOWN, now=NOW)
    assert caught.value.errors[0].msg == caught.value.detail
    return caught.value.code, caught.value.errors[0].loc


def test_a_plain_task_is_ready_now_on_the_pools_terms() -> None:
    row = taken(Submission("{}"))
    assert (row.state, row.ready_at, row.due_at) == (TaskState.READY, NOW, None)
    assert (row.pool, row.max_attempts, row.expected_s) == (PoolId(7), 3, 2.0)
    assert (row.needs, row.amounts, row.deadline_at, row.latest_start) == ((), (), None, None)


def test_resources_are_kept_in_the_order_in_which_they_are_locked() -> None:
    row = taken(Submission("{}", resources={"gpu": 1.0, "api": 100.0}))
    assert (row.needs, row.amounts) == ((2, 9), (100.0, 1.0))


@pytest.mark.parametrize(
    ("submission", "deadline_at", "latest_start"),
    [
        (Submission("{}", deadline_at=1_060.0), 1_060.0, 1_058.0),
        (Submission("{}", deadline_in_s=60.0), 1_060.0, 1_058.0),
        (Submission("{}", deadline_in_s=60.0, duration_hint_s=20.0), 1_060.0, 1_040.0),
    ],
)
def test_the_latest_start_is_the_deadline_less_the_expected_duration(
    submission: Submission, deadline_at: float, latest_start: float
) -> None:
    row = taken(submission)
    assert (row.deadline_at, row.latest_start) == (deadline_at, latest_start)


@pytest.mark.parametrize("submission", [Submission("{}", start_in_s=5.0), Submission("{}", start_at=NOW + 5.0)])
def test_a_start_ahead_is_scheduled(submission: Submission) -> None:
    row = taken(submission)
    assert (row.state, row.ready_at, row.due_at) == (TaskState.SCHEDULED, None, NOW + 5.0)


@pytest.mark.parametrize("start_at", [0.0, NOW])
def test_a_start_that_has_come_is_ready_at_once(start_at: float) -> None:
    assert taken(Submission("{}", start_at=start_at)).state is TaskState.READY


@given(own=st.none() | st.integers(1, 1_000))
def test_attempts_follow_the_task_then_the_pool_and_are_bounded(own: int | None) -> None:
    row = taken(Submission("{}", retry=RetrySettings(max_attempts=own)))
    assert row.max_attempts == min(ATTEMPTS_MAX, own or POOL.max_attempts)


def test_only_the_retry_settings_that_were_given_are_stored() -> None:
    assert RetrySettings().as_json() == {}
    settings = RetrySettings(max_attempts=2, initial_backoff_s=0.0, jitter=False)
    assert settings.as_json() == {"initial_backoff_s": 0.0, "jitter": False}


def test_every_refusal_names_its_field() -> None:
    assert refusal(Submission("{}", pool="x"), pool=None) == ("unknown_pool", ("pool",))
    assert refusal(Submission("{}", resources={"no": 1.0})) == ("unknown_resource", ("resources", "no"))
    many = {f"r{n}": 1.0 for n in range(RESOURCES_PER_TASK_MAX + 1)}
    assert refusal(Submission("{}", resources=many)) == ("too_many_resources", ("resources",))
    far = Submission("{}", start_in_s=START_AHEAD_MAX_S + 1.0)
    assert refusal(far) == ("start_too_far", ("start_at",))


@pytest.mark.parametrize(("name", "amount"), [("api", 100.1), ("gpu", 5.0), ("api", float("inf"))])
def test_more_than_a_limit_can_ever_give_is_refused_at_the_door(name: str, amount: float) -> None:
    assert refusal(Submission("{}", resources={name: amount})) == ("resource_exceeds_capacity", ("resources", name))


@pytest.mark.parametrize("amount", [0.0, -1.0, float("-inf"), float("nan")])
def test_an_amount_that_is_not_positive_would_fill_the_limit_and_is_refused(amount: float) -> None:
    assert refusal(Submission("{}", resources={"api": amount})) == ("resource_amount", ("resources", "api"))
