"""What people are told about a task that waits for others, or never could start because of them."""

from __future__ import annotations

import pytest

from scheduler.policy.explain import PARENTS_SHOWN_MAX, Reason, explain
from scheduler.policy.graph import ComesAfter, EdgeCondition
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from tests.policy.test_explain import NOW, around, task

S, F, C = EdgeCondition.SUCCESS, EdgeCondition.FAILURE, EdgeCondition.COMPLETE


def after(
    key: str | None, state: TaskState | None = TaskState.RUNNING, on: EdgeCondition = S, met: bool | None = None
) -> ComesAfter:
    return ComesAfter(key, TaskId(7), on, state, met)


def told(state: TaskState, *parents: ComesAfter, due_at: float | None = None) -> list[Reason]:
    return list(explain(task(state, after=parents, due_at=due_at), around()))


@pytest.mark.parametrize(
    ("parents", "text"),
    [
        ([after("a")], "It waits for a to succeed (now running)."),
        (
            [after("a", on=F), after(None, TaskState.READY, C), after("met", TaskState.SUCCEEDED, met=True)],
            "It waits for a to fail (now running) and task 7 to end (now ready).",
        ),
        ([after("a", None)], "It waits for a to succeed (which nobody has submitted yet)."),
        (
            [after("a"), after("b"), after("c")],
            "It waits for a to succeed (now running), b to succeed (now running) and c to succeed (now running).",
        ),
        (
            [after(key) for key in "abcde"],
            f"It waits for {', '.join(f'{key} to succeed (now running)' for key in 'abc')} and 2 more.",
        ),
        ([], "It waits for other tasks to end."),
    ],
)
def test_a_blocked_task_names_what_it_waits_for(parents: list[ComesAfter], text: str) -> None:
    (reason,) = told(TaskState.BLOCKED, *parents)
    assert (reason.code, reason.text) == ("blocked_on", text)


def test_the_details_are_bounded_and_say_how_many_there_are() -> None:
    (reason,) = told(TaskState.BLOCKED, *(after(f"p{n}") for n in range(1_000)))
    shown = reason.detail["waits_for"]
    assert isinstance(shown, list)
    assert (len(shown), reason.detail["count"]) == (PARENTS_SHOWN_MAX, 1_000)
    assert shown[0] == {"key": "p0", "id": 7, "on": "success", "state": "running"}


def test_a_blocked_task_with_a_start_ahead_says_both() -> None:
    blocked, ahead = told(TaskState.BLOCKED, after("a"), due_at=NOW + 30)
    assert (blocked.code, ahead.code) == ("blocked_on", "scheduled_until")
    assert ahead.text.startswith("It is not to start before 2027")
    assert len(told(TaskState.BLOCKED, after("a"), due_at=NOW)) == 1


def test_a_skipped_task_says_because_of_whom() -> None:
    fine = after("fine", TaskState.SUCCEEDED, met=True)
    (reason,) = told(TaskState.SKIPPED, fine, after("bad", TaskState.FAILED, met=False), after("no", None, met=False))
    assert reason.text == (
        "It was skipped, because it comes after bad, which had to succeed and is failed "
        "and no, which nobody submitted in time."
    )
    assert reason.detail["because"] == [
        {"key": "bad", "id": 7, "on": "success", "state": "failed"},
        {"key": "no", "id": 7, "on": "success", "state": None},
    ]
    assert told(TaskState.SKIPPED)[0].text == "It was skipped."
