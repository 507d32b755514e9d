"""Ends tasks that did not start in time: `missed`, or `failed` where a fixed start says so. None starts after its time.

The claim of a plan looks at the time itself; this only says afterwards what became of the task.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from scheduler.services.graphs import follow, lock_for_cancel
from scheduler.store import missing as store

BLOCKED_MAX: Final = 200
"""Blocked tasks ended in one round."""


def end_overdue(tasks_max: int) -> int:
    """End waiting tasks whose time has passed, in the caller's transaction; returns how many."""
    ended = store.end_overdue(tasks_max)
    tied = [e for e in ended if e.links]
    if tied:
        follow(tied)
    return len(ended)


def end_overdue_blocked() -> int:
    """End tasks whose time passed while they waited for others, each in a transaction of its own; returns how many.

    Apart from `end_overdue`, because a blocked task is locked together with those behind it.
    """
    count = 0
    for task in store.find_overdue_blocked(BLOCKED_MAX):
        with transaction.atomic():
            lock_for_cancel(task)
            ended = store.end_overdue_blocked(task)
            if ended is not None:
                count += 1
                follow([ended])
    return count
