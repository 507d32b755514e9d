"""Works operations off: a few tasks at a time, at the operation's rate, each judged when its turn comes.

What is done to the tasks, what is written of them and how far the operation has come commit together. So whoever works,
and however they end, no task is done twice and none is forgotten; any number of engines may work at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.policy.operations import BATCH_MAX, Found, OperationKind, Skip, allow, decide_item
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.services import graphs
from scheduler.store import dead as dead_store
from scheduler.store import operations as store
from scheduler.store import tasks as task_store
from scheduler.store.groups import Member
from scheduler.store.operations import Due, Standing

OPERATIONS_MAX: Final = 10
"""Operations worked on in one round; each keeps its own rate."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What a round came to: tasks that were acted on, and whether any operation is under way."""

    applied: int
    busy: bool


def work_operations() -> Worked:
    """One round: what the rates of all operations under way allow now. One short query when there are none.

    Each has a transaction of its own, so that none holds what another waits for.
    """
    applied = last = rounds = 0
    while rounds < OPERATIONS_MAX:
        with transaction.atomic():
            due = store.lock_due(after=last)
            if due is None:
                break
            applied += _work(due)
        last, rounds = due.operation, rounds + 1
    return Worked(applied, busy=rounds > 0)


def _work(due: Due) -> int:
    allowed = allow(rate=due.rate, credit=due.credit, since_s=due.since_s)
    items = store.load_next(due.operation, rows_max=min(allowed.items, BATCH_MAX)) if allowed.items else []
    tasks = sorted({item.task for item in items})
    outcomes: Mapping[TaskId, Skip | None] = _ACTS[due.kind](tasks) if tasks else {}
    done = {item.place: outcomes[item.task] for item in items if item.task in outcomes}
    if done:
        store.write_outcomes(due.operation, done)
    applied = sum(why is None for why in done.values())
    credit = allowed.credit + (allowed.items - len(done) if items and len(done) < len(items) else 0)
    store.advance(due.operation, applied=applied, skipped=len(done) - applied, credit=credit)
    return applied


def _judge(kind: OperationKind, tasks: Sequence[TaskId], standing: Mapping[TaskId, Standing]) -> dict[TaskId, Skip]:
    """Those that are not to be acted on, and why."""
    verdicts = {
        task: decide_item(kind, Found(found.state, bool(found.discarded)) if (found := standing.get(task)) else None)
        for task in tasks
    }
    return {task: why for task, why in verdicts.items() if why is not None}


def _held(tasks: Sequence[TaskId]) -> tuple[list[TaskId], dict[TaskId, Standing]]:
    """The tasks that are held from now on or gone, and where they stand; those that others hold come next time."""
    held = store.lock_tasks(tasks)
    standing = store.load_standing(tasks)
    return [task for task in tasks if task in held or task not in standing], standing


def _replay(tasks: Sequence[TaskId]) -> dict[TaskId, Skip | None]:
    mine, standing = _held(tasks)
    skips = _judge(OperationKind.REPLAY, mine, standing)
    wanted = [task for task in mine if task not in skips]
    done = task_store.replay(wanted) if wanted else set()
    return {task: None if task in done else skips.get(task, Skip.UNMET) for task in mine}


def _discard(tasks: Sequence[TaskId]) -> dict[TaskId, Skip | None]:
    mine, standing = _held(tasks)
    skips = _judge(OperationKind.DISCARD, mine, standing)
    done = dead_store.discard([task for task in mine if task not in skips])
    return {task: None if task in done else skips.get(task, Skip.NOT_DEAD) for task in mine}


def _restore(tasks: Sequence[TaskId]) -> dict[TaskId, Skip | None]:
    mine, standing = _held(tasks)
    skips = _judge(OperationKind.RESTORE, mine, standing)
    done = dead_store.restore([task for task in mine if task not in skips])
    return {task: None if task in done else skips.get(task, Skip.KEPT) for task in mine}


def _cancel(tasks: Sequence[TaskId]) -> dict[TaskId, Skip | None]:
    """Running ones are told to stop first: leases are locked before tasks. One that moves meanwhile comes next time."""
    standing = store.load_standing(tasks)
    skips = _judge(OperationKind.CANCEL, tasks, standing)
    running = [task for task in tasks if task not in skips and standing[task].state is TaskState.RUNNING]
    told = store.tell_running(running) if running else set()
    waiting = [
        Member(task, standing[task].state, standing[task].links)
        for task in tasks
        if task not in skips and standing[task].state is not TaskState.RUNNING
    ]
    if waiting:
        graphs.cancel_all(waiting)
    after = task_store.load_states([member.task for member in waiting])
    done = told | {task for task, state in after.items() if state is TaskState.CANCELLED}
    return {task: skips.get(task) for task in tasks if task in skips or task in done}


_ACTS: Final[Mapping[OperationKind, Callable[[Sequence[TaskId]], Mapping[TaskId, Skip | None]]]] = {
    OperationKind.REPLAY: _replay,
    OperationKind.CANCEL: _cancel,
    OperationKind.DISCARD: _discard,
    OperationKind.RESTORE: _restore,
}
