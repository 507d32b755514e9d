"""Decides how to tell a person why a task is not running: every reason that holds now, in the order of the gates.

It explains with the planner's own arithmetic and never guesses. `position` is an estimate of how many tasks go first,
because fairness between tenants depends on what arrives meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from scheduler.policy.budget_words import TaskCost, lack_of_money
from scheduler.policy.graph import ComesAfter, EdgeCondition
from scheduler.policy.limits import ShortBy, limit_at, shortage
from scheduler.policy.quotas import Quota
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import PriorityClass, ResourceView, TenantView, WaitReason

POSITION_MAX: Final = 10_000
SETTLED: Final = TERMINAL | {TaskState.RUNNING}
MINUTE_S: Final = 60.0
HOUR_S: Final = 3_600.0
PARENTS_NAMED_MAX: Final = 3
"""Of those that a task waits for, in the sentence; and in its details:"""
PARENTS_SHOWN_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: a stable `code`, a sentence for a person, and the figures behind it (times in Unix seconds)."""

    code: str
    text: str
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Need:
    """An amount of a named limit, with the limit as it is now (a semaphore's level is what is not held)."""

    name: str
    amount: float
    view: ResourceView


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """The task in question."""

    state: TaskState
    tenant: str
    attempts: int
    max_attempts: int
    due_at: float | None
    needs: tuple[Need, ...]
    last_failure: str | None = None
    after: tuple[ComesAfter, ...] = ()
    start_by: float | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the task's pool and tenant look like. `free_slots` of None: no worker offers any slot.

    `matching`: some worker that does takes work of the task's tenant, with its `labels` (name=value).

    `held` of the free slots are kept for other tasks' fixed starts, the first of which is at `held_for`. `limits` is
    the tenant with what it uses of its own limits; None when nothing is asked about a tenant. `stopped` is what kills
    and its own run say to the task.
    """

    now: float
    pool: str
    paused_by: str | None
    pause_reason: str
    tenant_suspended: bool
    slots: int
    running: int
    free_slots: int | None
    ahead: int
    limits: TenantView | None = None
    matching: bool = True
    labels: tuple[str, ...] = ()
    cost: TaskCost | None = None
    held: int = 0
    held_for: float | None = None
    stopped: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneAhead:
    """A lane of the pool: how many tasks wait in it, and how its head scores."""

    priority: PriorityClass
    same_tenant: bool
    waiting: int
    head_score: float


def explain(task: WaitingTask, around: Surroundings) -> tuple[Reason, ...]:
    """Why the task does not run, most decisive reason first; for one that runs or has ended, that."""
    if task.state in SETTLED:
        return explain_settled(task)
    gates = (*around.stopped, *_pool_gates(around), *_tenant_gates(task, around))
    if task.state is not TaskState.READY:
        return (_not_ready(task, around.now), *_not_before(task, around.now), *gates, *_not_after(task, around.now))
    reasons = (
        *gates,
        *_limit_gates(task, around),
        *_money_gates(task, around),
        *_resource_gates(task, around.now),
        *_slot_gates(around),
        *_behind(around),
    )
    waits = reasons or (Reason("next", "Nothing holds it back: it starts at the next plan.", {}),)
    return (*waits, *_not_after(task, around.now))


def explain_settled(task: WaitingTask) -> tuple[Reason, ...]:
    """Why a task that runs or has ended (`SETTLED`) does not wait: nothing around it matters."""
    if task.state is TaskState.RUNNING:
        text = f"It runs now: attempt {task.attempts} of at most {task.max_attempts}."
        return (Reason("running", text, {"attempt": task.attempts, "max_attempts": task.max_attempts}),)
    return (_ended(task),)


def explain_pool(around: Surroundings, waiting: int, short: Reason | None) -> tuple[Reason, ...]:
    """Why a pool does not start more than it does. `short` is the limit that its next task waits for, if one does."""
    if not waiting:
        if around.paused_by is not None:
            return tuple(_pool_gates(around))
        text = (
            f"Nothing is ready to start in the pool {around.pool}; {around.running} of {around.slots} slots are busy."
        )
        return (Reason("idle", text, {"running": around.running, "slots": around.slots}),)
    gates = (*_pool_gates(around), *((short,) if short is not None else ()), *_slot_gates(around))
    return gates or (Reason("next", "Nothing holds it back: what is ready starts at the next plan.", {}),)


def position(priority: PriorityClass, score: float, ahead_in_lane: int, lanes: Sequence[LaneAhead]) -> int:
    """About how many tasks start first, at most POSITION_MAX.

    All of its own lane that came earlier; all of a more urgent lane whose head scores higher; of another tenant's lane
    in its own class, as many as its own lane sends meanwhile, because tenants take turns.
    """
    ahead = ahead_in_lane
    for lane in lanes:
        turns = min(lane.waiting, ahead_in_lane + 1)
        if lane.priority == priority and not lane.same_tenant:
            ahead += min(turns, ahead_in_lane + (lane.head_score > score))
        elif lane.head_score > score:
            ahead += lane.waiting if lane.priority < priority else turns
    return min(ahead, POSITION_MAX)


_ENDINGS: Final = {
    TaskState.SUCCEEDED: "has succeeded",
    TaskState.FAILED: "has failed for good",
    TaskState.DEAD_LETTERED: "has used up its attempts, or met a fault that repeating does not mend",
    TaskState.CANCELLED: "was cancelled",
    TaskState.SKIPPED: "was skipped",
    TaskState.MISSED: "missed the time by which it had to start",
    TaskState.SHED: "was dropped while there was too much to do",
}


def _ended(task: WaitingTask) -> Reason:
    detail: dict[str, object] = {"attempts": task.attempts, "max_attempts": task.max_attempts}
    told = task.state in (TaskState.FAILED, TaskState.DEAD_LETTERED) and task.last_failure
    said = f". Its last attempt: {task.last_failure}" if told else "."
    if task.start_by is not None and task.state in (TaskState.MISSED, TaskState.FAILED) and not told:
        detail |= {"start_by_at": task.start_by}
        said = f": it had not started by {_clock(task.start_by)}."
    spoiled = [each for each in task.after if each.met is False]
    if task.state is TaskState.SKIPPED and spoiled:
        detail |= {"because": [_shown(each) for each in spoiled[:PARENTS_SHOWN_MAX]]}
        said = f", because it comes after {_listed([_missed(each) for each in spoiled])}."
    return Reason(task.state.value, f"It {_ENDINGS[task.state]}{said}", detail)


def _not_ready(task: WaitingTask, now: float) -> Reason:
    if task.state is TaskState.BLOCKED:
        return _blocked(task)
    due_at = task.due_at or now
    detail: dict[str, object] = {"due_at": due_at, "in_s": _in_s(due_at, now)}
    if task.state is TaskState.RETRYING:
        said = f" Attempt {task.attempts} failed: {task.last_failure}" if task.last_failure else ""
        text = f"It is tried again at {_clock(due_at)}, {_soon(due_at, now)}.{said}"
        return Reason(
            WaitReason.RETRY_AT, text, detail | {"attempts": task.attempts, "max_attempts": task.max_attempts}
        )
    return Reason(WaitReason.SCHEDULED_UNTIL, f"It is to start at {_clock(due_at)}, {_soon(due_at, now)}.", detail)


def _not_before(task: WaitingTask, now: float) -> list[Reason]:
    """Of a blocked task that has a start time too."""
    if task.state is not TaskState.BLOCKED or task.due_at is None or task.due_at <= now:
        return []
    text = f"It is not to start before {_clock(task.due_at)}, {_soon(task.due_at, now)}."
    return [Reason(WaitReason.SCHEDULED_UNTIL, text, {"due_at": task.due_at, "in_s": _in_s(task.due_at, now)})]


def _not_after(task: WaitingTask, now: float) -> list[Reason]:
    """Of a task that is useless, or says it failed, when it starts too late."""
    if task.start_by is None:
        return []
    text = f"If it has not started by {_clock(task.start_by)}, {_soon(task.start_by, now)}, it has missed its time."
    return [Reason("start_by", text, {"start_by_at": task.start_by, "in_s": _in_s(task.start_by, now)})]


def _blocked(task: WaitingTask) -> Reason:
    waits_for = [each for each in task.after if each.met is None]
    if not waits_for:
        return Reason(WaitReason.BLOCKED_ON, "It waits for other tasks to end.")
    text = f"It waits for {_listed([_awaited(each) for each in waits_for])}."
    detail = {"waits_for": [_shown(each) for each in waits_for[:PARENTS_SHOWN_MAX]], "count": len(waits_for)}
    return Reason(WaitReason.BLOCKED_ON, text, detail)


_WANTED: Final = {
    EdgeCondition.SUCCESS: "succeed",
    EdgeCondition.FAILURE: "fail",
    EdgeCondition.COMPLETE: "end",
}


def _awaited(each: ComesAfter) -> str:
    where = "which nobody has submitted yet" if each.state is None else f"now {each.state}"
    return f"{each.name} to {_WANTED[each.on]} ({where})"


def _missed(each: ComesAfter) -> str:
    if each.state is None:
        return f"{each.name}, which nobody submitted in time"
    return f"{each.name}, which had to {_WANTED[each.on]} and is {each.state}"


def _shown(each: ComesAfter) -> dict[str, object]:
    state = None if each.state is None else each.state.value
    return {"key": each.key, "id": each.id, "on": each.on.value, "state": state}


def _listed(names: Sequence[str]) -> str:
    more = len(names) - PARENTS_NAMED_MAX
    if more > 0:
        return f"{', '.join(names[:PARENTS_NAMED_MAX])} and {more} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _pool_gates(around: Surroundings) -> list[Reason]:
    if around.paused_by is None:
        return []
    by = f" by {around.paused_by}" if around.paused_by else ""
    why = f": {around.pause_reason}" if around.pause_reason else "."
    detail = {"pool": around.pool, "paused_by": around.paused_by, "reason": around.pause_reason}
    return [Reason(WaitReason.POOL_PAUSED, f"The pool {around.pool} was paused{by}{why}", detail)]


def _tenant_gates(task: WaitingTask, around: Surroundings) -> list[Reason]:
    if not around.tenant_suspended:
        return []
    text = f"The tenant {task.tenant} is suspended; its tasks start again when it is active."
    return [Reason(WaitReason.TENANT_SUSPENDED, text, {"tenant": task.tenant})]


def _limit_gates(task: WaitingTask, around: Surroundings) -> list[Reason]:
    """What the tenant's own limits say, by the planner's own arithmetic."""
    view = around.limits
    if view is None or not view.limited:
        return []
    quota, found = Quota(view, around.now), []
    if quota.is_dry():
        again = quota.refills_at(around.now)
        then = f"its next start is due {_soon(again, around.now)}" if again is not None else "its limit is 0"
        text = f"The tenant {task.tenant} may start {view.start_rate:g} tasks a second; {then}."
        detail: dict[str, object] = {"rate": view.start_rate, "burst": view.start_burst, "next_at": again}
        found.append(Reason(WaitReason.TENANT_START_RATE, text, detail))
    if quota.is_full():
        text = f"{view.in_flight} tasks of the tenant {task.tenant} run, and no more than {view.max_in_flight} may."
        detail = {"in_flight": view.in_flight, "max_in_flight": view.max_in_flight}
        found.append(Reason(WaitReason.TENANT_IN_FLIGHT, text, detail))
    return found


def _money_gates(task: WaitingTask, around: Surroundings) -> list[Reason]:
    said = None if around.cost is None else lack_of_money(task.tenant, around.cost)
    return [] if said is None else [Reason(WaitReason.TENANT_BUDGET, *said)]


def _resource_gates(task: WaitingTask, now: float) -> list[Reason]:
    found = []
    for need in task.needs:
        limit = limit_at(need.view, now=now)
        short = shortage(limit, limit.available, need.amount, now=now)
        if short is None:
            continue
        again = short.look_again_at
        detail: dict[str, object] = {
            "resource": need.name,
            "needed": need.amount,
            "available": short.available,
            "next_at": again,
        }
        head = f"It needs {need.amount:g} of {need.name}"
        if short.by is ShortBy.BARRED:
            text = f"{head}, whose provider fails: {_tried_again(again, now)}."
            found.append(Reason(WaitReason.BREAKER_OPEN, text, detail))
            continue
        if limit.paused:
            text = f"{head}, which is paused until somebody resumes it."
        elif limit.capacity <= 0.0:
            text = f"{head}, which is paused: its limit is 0."
        elif limit.closed_until is not None:
            text = f"{head}, and the provider asked us to stay away until {_clock(limit.closed_until)}."
        elif again is None:
            text = f"{head}, and {max(short.available, 0.0):g} are free: others hold the rest."
        else:
            text = f"{head}, which has {short.available:.3g}; enough is back {_soon(again, now)}."
        found.append(Reason(WaitReason.RESOURCE, text, detail))
    return found


def _tried_again(again: float | None, now: float) -> str:
    if again is None:
        return "one task tries it now, and the others wait for what comes of that"
    return f"it is tried again with one task at {_clock(again)}, {_soon(again, now)}"


def _slot_gates(around: Surroundings) -> list[Reason]:
    detail = {"pool": around.pool, "slots": around.slots, "running": around.running}
    if around.running >= around.slots:
        text = f"All {around.slots} slots of the pool {around.pool} are taken."
        if around.slots == 0:
            text = f"The pool {around.pool} has no slots at the moment."
        return [Reason(WaitReason.NO_FREE_SLOT, text, detail)]
    if around.free_slots is None:
        text = f"No worker is connected that runs tasks of the pool {around.pool}. Is an engine running?"
        return [Reason(WaitReason.NO_WORKER, text, detail)]
    if not around.matching:
        asked = f" with {', '.join(around.labels)}" if around.labels else ""
        text = f"No worker of the pool {around.pool} that takes this tenant's work{asked} is connected."
        return [Reason(WaitReason.NO_MATCHING_WORKER, text, {**detail, "labels": list(around.labels)})]
    if around.free_slots <= 0:
        text = f"All slots that workers offer to the pool {around.pool} are taken."
        return [Reason(WaitReason.NO_FREE_SLOT, text, detail)]
    return _held_slots(around)


def _held_slots(around: Surroundings) -> list[Reason]:
    """Of slots that are free, but not for everybody."""
    free = min(around.slots - around.running, around.free_slots or 0)
    if around.held_for is None or around.held < free:
        return []
    kept = "The free slot" if free == 1 else f"The {free} free slots"
    kept += f" of the pool {around.pool} {'is' if free == 1 else 'are'} kept"
    text = f"{kept} for a fixed start at {_clock(around.held_for)}, {_soon(around.held_for, around.now)}."
    if around.held > 1:
        text = f"{kept} for fixed starts, the first at {_clock(around.held_for)}, {_soon(around.held_for, around.now)}."
    detail = {"pool": around.pool, "slots": around.slots, "running": around.running}
    return [Reason(WaitReason.SLOT_HELD, text, detail | {"held": around.held, "starts_at": around.held_for})]


def _behind(around: Surroundings) -> list[Reason]:
    if around.ahead <= 0:
        return []
    count = f"{around.ahead} or more tasks go" if around.ahead >= POSITION_MAX else _tasks_go(around.ahead)
    return [Reason(WaitReason.BEHIND, f"About {count} first in the pool {around.pool}.", {"ahead": around.ahead})]


def _tasks_go(count: int) -> str:
    return "one task goes" if count == 1 else f"{count} tasks go"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _in_s(at: float, now: float) -> float:
    return round(max(0.0, at - now), 3)


def _soon(at: float, now: float) -> str:
    seconds = _in_s(at, now)
    if seconds < 1.0:
        return "in less than a second"
    if seconds < 2 * MINUTE_S:
        return f"in {seconds:.0f} s"
    return f"in {seconds / MINUTE_S:.0f} min" if seconds < 2 * HOUR_S else f"in {seconds / HOUR_S:.0f} h"
