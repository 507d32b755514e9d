"""Cancels a task at its owner's wish: a waiting one at once, a running one by asking its attempt to stop.

The request to stop is a mark on the lease, delivered with the next heartbeat; the task is cancelled when the attempt
acknowledges it or the grace has passed. It must never touch a lease in any other way. Tasks that come after it are
skipped, or let go if they only waited for its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.errors import Conflict, NotFound, Unavailable
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.services.again import again
from scheduler.services.changes import Author, check_reason, record
from scheduler.services.graphs import follow, lock_for_cancel
from scheduler.store import tasks as store

TRIES: Final = 3
"""A task may move between our look and our write; this many looks before the client is asked to repeat."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Where the task stands now; `requested` says that it still runs and has been told to stop."""

    state: TaskState
    requested: bool


@again
def cancel(task: TaskId, tenant: TenantId | None, *, actor: str, reason: str = "", source: str = "api") -> Cancelled:
    """Cancel a task of `tenant` (None: of anyone).

    Raises NotFound, also for another tenant's; Conflict with its state when it has ended.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    for _ in range(TRIES):
        with transaction.atomic():
            before = state_of(task, tenant)
            if before in TERMINAL:
                raise Conflict(f"Task {task} has ended already: it is {before}.", code="task_ended")
            after = _move(task, before)
            if after is not None:
                change = {"state": after.state.value, "requested": after.requested}
                record(author, "task.cancel", f"task:{task}", before={"state": before.value}, after=change)
                return after
    raise Unavailable(f"Task {task} moves too fast to be cancelled; try again.", code="task_moved", retry_after_s=1.0)


def _move(task: TaskId, before: TaskState) -> Cancelled | None:
    if before is TaskState.BLOCKED:
        lock_for_cancel(task)
    ended = store.cancel_waiting([task])
    if ended:
        if ended[0].links:
            follow(ended)
        return Cancelled(TaskState.CANCELLED, requested=False)
    if store.request_cancel([task]):
        return Cancelled(TaskState.RUNNING, requested=True)
    return None


def state_of(task: TaskId, tenant: TenantId | None) -> TaskState:
    """Where a task of `tenant` (None: of anyone) stands. Raises NotFound."""
    rows = store.load([task], tenant=tenant)
    if not rows:
        raise NotFound(f"There is no task {task}.", code="unknown_task")
    return rows[0].state
