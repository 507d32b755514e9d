"""Gathers what `policy.explain` needs to say why a task waits. Cost grows with its pool's lanes, not with tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import NotFound
from scheduler.policy.calibration import Band
from scheduler.policy.explain import (
    POSITION_MAX,
    LaneAhead,
    Need,
    Reason,
    Surroundings,
    WaitingTask,
    explain,
    position,
)
from scheduler.policy.explain_runs import InForce, held_by_run, killed
from scheduler.policy.graph import EDGES_PER_TASK_MAX
from scheduler.policy.limits import less_held
from scheduler.policy.order import score
from scheduler.policy.states import TaskState
from scheduler.policy.types import (
    WORKER_FRESH_S,
    LaneKey,
    PoolId,
    PriorityClass,
    TaskId,
    TaskView,
    TenantId,
)
from scheduler.reads.forecast import published_forecast
from scheduler.reads.money import cost_of_task
from scheduler.reads.tasks import ID_MAX
from scheduler.reads.tenants import limits_in_use
from scheduler.store import control, dispatch, fixed_starts, graphs, overview, resources, runs, tasks
from scheduler.store import kills as kill_store

LANES_MAX: Final = 500
"""Lanes looked at for the position: beyond that many, the most urgent classes."""

_OF_PARENTS: Final = (TaskState.BLOCKED, TaskState.SKIPPED)
"""States that are explained by those that the task comes after."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer. Times in Unix seconds.

    `position` counts the tasks that go first, `band` is how long from now until it starts; None for one not ready.
    """

    task: TaskId
    state: TaskState
    reasons: tuple[Reason, ...]
    position: int | None
    as_of: float
    band: Band | None = None


def why(task: TaskId, tenant: TenantId | None) -> Explanation:
    """Why a task of `tenant` (None: of anyone) is where it is. Raises NotFound."""
    rows = tasks.load([task], tenant=tenant) if 0 < task <= ID_MAX else []
    if not rows:
        raise NotFound(f"There is no task {task}.", code="unknown_task")
    row = rows[0]
    now = dispatch.load_now()
    ahead = _position(row, now) if row.state is TaskState.READY else None
    reasons = explain(_task(row), _surroundings(row, ahead or 0, now))
    band = _band(row, now) if row.state is TaskState.READY else None
    return Explanation(row.id, row.state, reasons, ahead, now, band)


def _band(row: tasks.TaskRow, now: float) -> Band | None:
    """When it may start, by its place in its lane; None where too little is known."""
    said = published_forecast(now=now)
    lane = LaneKey(row.pool_id, row.priority, row.tenant_id, row.demand_id)
    return None if said is None else said.at(lane, tasks.count_ahead_in_lane(row.id, count_max=POSITION_MAX) + 1)


def _task(row: tasks.TaskRow) -> WaitingTask:
    attempts = tasks.load_attempts(row.id, rows_max=1)
    return WaitingTask(
        state=row.state,
        tenant=row.tenant,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        due_at=row.due_at,
        start_by=row.start_by,
        needs=_needs(row),
        last_failure=attempts[0].message if attempts else None,
        after=tuple(graphs.load_parents(row.id, rows_max=EDGES_PER_TASK_MAX)) if row.state in _OF_PARENTS else (),
    )


def _needs(row: tasks.TaskRow) -> tuple[Need, ...]:
    if not row.resources:
        return ()
    named = {r.view.id: r for r in resources.load()}
    held = resources.load_held()
    return tuple(
        Need(named[r].name, amount, less_held(named[r].view, held.get(r, 0.0)))
        for r, amount in zip(row.resources, row.amounts, strict=True)
    )


def _surroundings(row: tasks.TaskRow, ahead: int, now: float) -> Surroundings:
    pool = control.load_pools([row.pool])[0]
    tenant = control.load_tenants([row.tenant])[0]
    running = overview.load_running().get(row.pool_id, 0)
    labels = tuple(sorted(dispatch.load_demands([row.demand_id])[row.demand_id].labels))
    offered = overview.load_offered(row.pool_id, tenant=row.tenant_id, labels=labels, fresh_s=WORKER_FRESH_S)
    held, held_for = fixed_starts.load_held(row.pool_id, but=row.id)
    return Surroundings(
        now=now,
        pool=row.pool,
        paused_by=None if pool.paused_at is None else pool.paused_by,
        pause_reason=pool.pause_reason,
        tenant_suspended=tenant.status == "suspended",
        slots=pool.settings.slots,
        running=running,
        free_slots=offered.free if offered.workers else None,
        ahead=ahead,
        limits=limits_in_use(tenant),
        matching=offered.matching > 0,
        labels=labels,
        cost=cost_of_task(row.id),
        held=held,
        held_for=held_for,
        stopped=_stopped(row),
    )


def _stopped(row: tasks.TaskRow) -> tuple[Reason, ...]:
    """What kills, and the run that it is a step of, say to it."""
    kills = [InForce(k.scope, k.name, k.actor, k.reason) for k in kill_store.load()]
    around = None if row.run is None else runs.load_around(row.run)
    of_run = () if around is None else held_by_run(around, row.id, writes=row.writes)
    return (*killed(kills, tenant=row.tenant, pool=row.pool), *of_run)


def free_slots(pool: PoolId) -> int | None:
    """Slots that connected workers offer to a pool and that nothing runs in; None when none offers any."""
    found = overview.load_offered(pool, fresh_s=WORKER_FRESH_S)
    return found.free if found.workers else None


def _position(row: tasks.TaskRow, now: float) -> int:
    mine = LaneKey(row.pool_id, row.priority, row.tenant_id, row.demand_id)
    waiting = tasks.load_ready_by_lane(row.pool_id)
    others = [key for key in sorted(waiting) if key != mine][:LANES_MAX]
    lanes = [
        LaneAhead(key.priority, key.tenant == row.tenant_id, waiting[key], _best_score(heads, key.priority, now))
        for key, heads in tasks.load_lane_heads(row.pool_id, others).items()
    ]
    view = TaskView(row.id, row.ready_at or now, row.latest_start, row.expected_s, row.amounts)
    in_lane = tasks.count_ahead_in_lane(row.id, count_max=POSITION_MAX)
    return position(row.priority, score(view, row.priority, now=now), in_lane, lanes)


def _best_score(heads: Sequence[TaskView], priority: PriorityClass, now: float) -> float:
    return max(score(head, priority, now=now) for head in heads)
