"""Carries the end of tasks to those that come after them and to the rest of their group, whatever ended them.

Three rules keep transactions that meet in one graph from waiting for each other or missing each other:

- What is waited for is locked in one statement, in id order: the blocked tasks that may move. Everything else is either
  the transaction's own already, or passed over when another holds it, and found again by `tend`.
- A task's row says whether its end has to look for others (`Links`). A batch sets that when it is stored; a submission
  that names a task of before has it set after its own commit (`link`), so that an open transaction of somebody's
  application can never hold up the settlement of the task it names.
- An edge is linked once its parent carries the flag; until then the sweep looks after it. So a parent that ends while
  its child is being submitted is seen by one of the two, however they interleave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from django.db import transaction

from scheduler.policy.graph import FAILURES, Links, is_met
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.store import graphs as store
from scheduler.store import groups as group_store
from scheduler.store import tasks as task_store
from scheduler.store.graphs import DecidedEdge, Ended, UnlinkedEdge
from scheduler.store.groups import GroupId, Member

LINK_MAX: Final = 5_000
"""Edges linked in one transaction."""
CLOSING_MAX: Final = 100
"""Cancelled groups tended in one round."""


def follow(ended: Sequence[Ended]) -> int:
    """What follows from these ends, in the transaction that made them. To be called for tasks with links only.

    Returns how many tasks may start now or were told to stop: reason to ring.
    """
    failed = [e.task for e in ended if e.state in FAILURES and e.links & Links.FAIL_FAST]
    return spread(ended, group_store.fail(failed) if failed else ())


def lock_for_cancel(task: TaskId) -> None:
    """Before a blocked task is cancelled: lock it with what may follow, in the order that everybody keeps."""
    store.lock_followers([(task, TaskState.CANCELLED)], own=[task])


def spread(ended: Sequence[Ended], groups: Sequence[GroupId] = ()) -> int:
    """Cancel what is left of these groups, then move on whoever came after what has ended.

    1. look which members wait;
    2. lock the blocked tasks that may move, in id order;
    3. cancel waiting members and tell running ones to stop, passing over those that others hold;
    4. decide edges, skip or let go the tasks behind them.
    """
    leaving = {e.task: e.state for e in ended if e.links & Links.CHILDREN}
    members = group_store.load_waiting(groups) if groups else []
    may_leave = leaving | {m.task: TaskState.CANCELLED for m in members if m.links & Links.CHILDREN}
    own = [m.task for m in members if m.state is TaskState.BLOCKED]
    locked = store.lock_followers(may_leave.items(), own=own) if may_leave or own else set()
    told = 0
    if groups:
        cancelled = group_store.cancel_members(members) if members else []
        leaving |= {m.task: m.state for m in cancelled if m.links & Links.CHILDREN}
        told = group_store.tell_members(groups)
    return told + (_decide(leaving, (), locked) if leaving else 0)


def cancel_all(members: Sequence[Member]) -> int:
    """Cancel these waiting tasks, passing over those that others hold, and move on whoever came after them.

    Returns how many tasks may start because of that.
    """
    may_leave = {m.task: TaskState.CANCELLED for m in members if m.links & Links.CHILDREN}
    own = [m.task for m in members if m.state is TaskState.BLOCKED]
    locked = store.lock_followers(may_leave.items(), own=own) if may_leave or own else set()
    cancelled = group_store.cancel_members(members) if members else []
    leaving = {m.task: m.state for m in cancelled if m.links & Links.CHILDREN}
    return _decide(leaving, (), locked) if leaving else 0


def _decide(leaving: Mapping[TaskId, TaskState], decided: Sequence[DecidedEdge], locked: set[TaskId]) -> int:
    """Decide edges, once nobody is left who came after the locking; returns how many tasks may start."""
    while True:
        moved, late = store.decide_followers(leaving.items(), decided, locked)
        if not late:
            return sum(state is not TaskState.SKIPPED for state in moved.values())
        locked |= store.lock_followers(leaving.items(), decided)


def link(children: Sequence[TaskId] | None = None) -> int:
    """Link edges to tasks that were there before: of these children, or (None) of any, awaited keys included.

    First the parents get their flag, and that is committed; then whoever has ended is decided. A parent that is being
    moved at this moment is left for the next sweep. Returns how many tasks may start.
    """
    edges = store.load_unlinked(children, edges_max=LINK_MAX)
    if children is not None:
        edges = [e for e in edges if not e.awaited]
    if not any(e.parent is not None or e.late for e in edges):
        return 0
    with transaction.atomic():
        flagged = store.flag_parents({e.parent for e in edges if e.parent is not None})
    with transaction.atomic():
        return _link([e for e in edges if e.parent in flagged or (e.parent is None and e.late)])


def _link(edges: Sequence[UnlinkedEdge]) -> int:
    awaited = [e for e in edges if e.awaited and e.parent is not None]
    circles: set[TaskId] = set()
    if awaited:
        store.take_linking_turn()
        circles = store.closes_circle(awaited)
    states = task_store.load_states([e.parent for e in edges if e.parent is not None])
    decided = [
        DecidedEdge(e.child, e.place, met)
        for e in edges
        if (met := _met(e, states, impossible=e.awaited and e.child in circles)) is not None
    ]
    # Edges are written under the lock of their child, here as everywhere.
    locked = store.lock_followers((), decided, own=sorted({e.child for e in edges}))
    freed = _decide({}, decided, locked) if decided else 0
    store.set_linked(edges)
    return freed


def _met(edge: UnlinkedEdge, states: Mapping[TaskId, TaskState], *, impossible: bool) -> bool | None:
    """Whether the edge is met. A key that was awaited in vain, or that closes a circle, makes it impossible."""
    if edge.parent is None or impossible:
        return False
    return is_met(edge.on, states[edge.parent]) if edge.parent in states else None


def tend() -> int:
    """The leader's round: link what is not linked yet, stop what is left of cancelled groups.

    Returns how many tasks may start or were told to stop. Two short queries when there is nothing to do.
    """
    woken = link()
    closing = group_store.load_closing(groups_max=CLOSING_MAX)
    if closing:
        with transaction.atomic():
            woken += spread((), closing)
            group_store.close(closing)
    return woken
