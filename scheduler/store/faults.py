"""What Python functions raised in their attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import LeaseId, TaskId
from scheduler.store import queries

_SQL: Final = queries.load("faults.sql")


@dataclass(frozen=True, slots=True)
class Fault:
    """The class of the exception as `module.Class`, and its traceback."""

    exception: str
    traceback: str


def add(lease: LeaseId, task: TaskId, fault: Fault) -> None:
    """Keep it."""
    params = {"lease": lease, "task": task, "exception": fault.exception, "traceback": fault.traceback}
    queries.run(_SQL["add_fault"], params)


def load(task: TaskId, *, rows_max: int) -> dict[LeaseId, Fault]:
    """The newest of a task, by lease."""
    rows = queries.fetch(_SQL["faults_of_task"], {"task": task, "rows_max": rows_max})
    return {LeaseId(lease): Fault(exception, traceback) for lease, exception, traceback in rows}
