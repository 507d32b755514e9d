"""Ends waiting tasks that did not start in time."""

from __future__ import annotations

from typing import Final

from scheduler.policy.graph import Links
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.store import queries
from scheduler.store.graphs import Ended

_SQL: Final = queries.load("missing.sql")


def end_overdue(tasks_max: int) -> list[Ended]:
    """End up to `tasks_max` tasks that are not blocked and may not start any more; those that ended."""
    return [_ended(*row) for row in queries.fetch(_SQL["end_overdue"], {"tasks_max": tasks_max})]


def find_overdue_blocked(tasks_max: int) -> list[TaskId]:
    """Blocked tasks that may not start any more."""
    return [TaskId(row[0]) for row in queries.fetch(_SQL["overdue_blocked"], {"tasks_max": tasks_max})]


def end_overdue_blocked(task: TaskId) -> Ended | None:
    """End one of them; None when it is blocked no more."""
    row = queries.fetch_one(_SQL["end_overdue_blocked"], {"task": task})
    return None if row is None else _ended(*row)


def _ended(task: int, state: str, links: int) -> Ended:
    return Ended(TaskId(task), TaskState(state), Links(links))
