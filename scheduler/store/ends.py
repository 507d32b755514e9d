"""Reads how tasks ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import TaskId
from scheduler.store import queries

_SQL: Final = queries.load("ends.sql")
_ENDED: Final = queries.array(sorted(TERMINAL))


class EndRow(NamedTuple):
    """How a task ended. `result` is JSON text, `state` None for a task that is not kept any more."""

    task: TaskId
    state: TaskState | None
    result: str | None
    message: str | None


def load_ends(tasks: Sequence[TaskId]) -> list[EndRow]:
    """Those of these tasks that have ended, or are not kept any more."""
    rows = queries.fetch(_SQL["read_ends"], {"tasks": queries.array(tasks), "ended": _ENDED})
    return [EndRow(task, None if state is None else TaskState(state), *rest) for task, state, *rest in rows]
