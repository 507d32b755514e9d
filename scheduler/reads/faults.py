"""What Python functions raised in the attempts at a task."""

from __future__ import annotations

from typing import Final

from scheduler.policy.types import LeaseId, TaskId
from scheduler.store import faults as store
from scheduler.store.faults import Fault

__all__ = ["Fault", "faults_of"]

FAULTS_MAX: Final = 100


def faults_of(task: TaskId) -> dict[LeaseId, Fault]:
    """By lease; the newest only where there are many."""
    return store.load(task, rows_max=FAULTS_MAX)
