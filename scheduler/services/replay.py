"""Starts an ended task afresh: same id and key, attempts from zero. The only way out of a terminal state.

It undoes nothing that the first end led to: tasks that were skipped because of it stay skipped.
"""

from __future__ import annotations

from django.db import transaction

from scheduler.errors import Conflict
from scheduler.policy.states import REPLAYABLE, TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.services.again import again
from scheduler.services.cancel import state_of
from scheduler.services.changes import Author, check_reason, record
from scheduler.store import tasks as store


@again
def replay(task: TaskId, tenant: TenantId | None, *, actor: str, reason: str = "", source: str = "api") -> TaskState:
    """Make a failed, dead-lettered, shed or missed task of `tenant` (None: of anyone) ready again.

    Raises NotFound, also for another tenant's; Conflict with its state when it cannot be replayed.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        before = state_of(task, tenant)
        if before not in REPLAYABLE or not store.replay([task]):
            now = state_of(task, tenant)
            if now in REPLAYABLE:
                detail = f"Task {task} comes after tasks that have not ended as it needs; it cannot be replayed."
                raise Conflict(detail, code="not_replayable")
            can = ", ".join(sorted(state.value for state in REPLAYABLE))
            raise Conflict(f"Task {task} is {now}; only these can be replayed: {can}.", code="not_replayable")
        after = {"state": TaskState.READY.value}
        record(author, "task.replay", f"task:{task}", before={"state": before.value}, after=after)
    return TaskState.READY
