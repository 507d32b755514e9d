"""States of a task, and the moves between them that are legal.

The only table of moves in the product: the database's CHECK constraint, the guards in SQL and the diagram in
ARCHITECTURE.md are compared with it by tests.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TaskState(StrEnum):
    """Where a task stands. `blocked`, `scheduled`, `ready` and `retrying` are waiting states."""

    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTERED = "dead_lettered"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    SHED = "shed"


_S = TaskState

WAITING: Final = frozenset({_S.BLOCKED, _S.SCHEDULED, _S.READY, _S.RETRYING})
TERMINAL: Final = frozenset({_S.SUCCEEDED, _S.FAILED, _S.DEAD_LETTERED, _S.CANCELLED, _S.SKIPPED, _S.MISSED, _S.SHED})
REPLAYABLE: Final = frozenset({_S.DEAD_LETTERED, _S.FAILED, _S.SHED, _S.MISSED})

MOVES: Final[dict[TaskState, frozenset[TaskState]]] = {
    _S.BLOCKED: frozenset({_S.SCHEDULED, _S.READY, _S.CANCELLED, _S.SKIPPED, _S.MISSED, _S.SHED}),
    _S.SCHEDULED: frozenset({_S.READY, _S.CANCELLED, _S.MISSED, _S.SHED}),
    _S.READY: frozenset({_S.RUNNING, _S.CANCELLED, _S.MISSED, _S.SHED}),
    _S.RUNNING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.DEAD_LETTERED, _S.CANCELLED, _S.RETRYING, _S.READY}),
    _S.RETRYING: frozenset({_S.READY, _S.CANCELLED, _S.MISSED, _S.SHED}),
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset({_S.READY}),
    _S.DEAD_LETTERED: frozenset({_S.READY}),
    _S.CANCELLED: frozenset(),
    _S.SKIPPED: frozenset(),
    _S.MISSED: frozenset({_S.READY}),
    _S.SHED: frozenset({_S.READY}),
}
"""From each state, the states that may follow. A move out of a terminal state is a replay."""


def may_move(source: TaskState, target: TaskState) -> bool:
    """Whether a task may go from `source` straight to `target`."""
    return target in MOVES[source]
