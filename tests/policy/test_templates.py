"""A task's description survives being stored with a schedule, under the names that a client uses."""

from __future__ import annotations

import json

from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.templates import misplaced, read, written
from scheduler.policy.types import PriorityClass

FULL = Submission(
    payload='{"a":["ü",null]}',
    pool="p",
    kind="chat",
    priority=PriorityClass.HIGH,
    key="k",
    deadline_in_s=5.0,
    tolerance_s=2.0,
    on_miss=OnMiss.SKIP,
    expires_in_s=9.0,
    timeout_s=3.0,
    retry=RetrySettings(max_attempts=2, initial_backoff_s=0.5),
    resources={"api": 2.0},
    tags={"a": "b"},
)


def test_what_is_written_is_read_back() -> None:
    assert read(json.loads(json.dumps(written(FULL)))) == FULL
    assert read(written(Submission(payload="1"))) == Submission(payload="1")


def test_it_is_written_as_a_client_would() -> None:
    stored = written(FULL)
    assert stored["priority"] == "high"
    assert stored["retry"] == {"max_attempts": 2, "initial_backoff": 0.5}
    assert (stored["timeout"], stored["on_miss"], stored["payload"]) == (3.0, "skip", {"a": ["ü", None]})
    assert written(Submission(payload="1")) == {"payload": 1}


def test_times_of_one_task_are_misplaced_and_a_field_of_the_future_is_passed_over() -> None:
    assert misplaced(Submission(payload="1", start_in_s=1.0, deadline_at=2.0)) == ["deadline_at", "start_in"]
    assert read({"payload": 1, "invented_later": True}) == Submission(payload="1")
