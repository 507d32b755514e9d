"""Gathers what `policy.explain` needs to say why a task waits. Cost grows with its pool's lanes, not with tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.policy.calibration import Band
from scheduler.policy.explain import (
    POSITION_MAX,
    SETTLED,
    LaneAhead,
    Need,
    Reason,
    Surroundings,
    WaitingTask,
    explain,
    explain_settled,
    position,
)
from scheduler.policy.explain_runs import InForce, held_by_run, killed
from scheduler.policy.graph import EDGES_PER_TASK_MAX, ComesAfter
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
from scheduler.reads.forecast import forecast_said
from scheduler.reads.money import cost_of_task
from scheduler.reads.tasks import task_row
from scheduler.reads.tenants import limits_in_use
from scheduler.store import (
    accounts,
    control,
    dispatch,
    fixed_starts,
    forecast,
    graphs,
    overview,
    resources,
    runs,
    tasks,
)
from scheduler.store import kills as kill_store
from scheduler.store.asking import Together
from scheduler.store.tasks import AttemptRow, TaskRow

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
    return explaining(task_row(task, tenant), Together())()


def explaining(row: TaskRow, asking: Together) -> Callable[[], Explanation]:
    """Ask beside what else is asked why a task is where it is; what comes back gives the explanation."""
    now = asking.add(dispatch.load_now.question())
    attempts = asking.add(tasks.load_attempts.question(row.id, rows_max=1))
    parents = asking.add(graphs.load_parents.question(row.id, rows_max=EDGES_PER_TASK_MAX))
    around = None if row.state in SETTLED else _Around(row, asking)
    ahead = _Ahead(row, asking) if row.state is TaskState.READY else None

    def explanation() -> Explanation:
        last, after = attempts.value, tuple(parents.value) if row.state in _OF_PARENTS else ()
        if around is None:
            reasons = explain_settled(_task(row, (), last, after))
            return Explanation(row.id, row.state, reasons, None, now.value)
        place = None if ahead is None else ahead.place(now.value)
        surroundings = around.surroundings(now.value, place or 0)
        reasons = explain(_task(row, around.needs(), last, after), surroundings)
        return Explanation(row.id, row.state, reasons, place, now.value, None if ahead is None else ahead.band())

    return explanation


def _task(
    row: TaskRow, needs: tuple[Need, ...], last: Sequence[AttemptRow], after: tuple[ComesAfter, ...]
) -> WaitingTask:
    return WaitingTask(
        state=row.state,
        tenant=row.tenant,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        due_at=row.due_at,
        start_by=row.start_by,
        needs=needs,
        last_failure=last[0].message if last else None,
        after=after,
    )


class _Ahead:
    """What is asked of a ready task's place among those that may go before it, and of when it may start."""

    def __init__(self, row: TaskRow, asking: Together) -> None:
        self._row = row
        self._lane = LaneKey(row.pool_id, row.priority, row.tenant_id, row.demand_id)
        self._lanes = asking.add(tasks.load_ready_by_lane.question(row.pool_id))
        self._in_lane = asking.add(tasks.count_ahead_in_lane.question(row.id, count_max=POSITION_MAX))
        self._said = asking.add(forecast.load_published.question())

    def place(self, now: float) -> int:
        """About how many tasks go first."""
        row, waiting = self._row, self._lanes.value
        others = [key for key in sorted(waiting) if key != self._lane][:LANES_MAX]
        lanes = [
            LaneAhead(key.priority, key.tenant == row.tenant_id, waiting[key], _best_score(heads, key.priority, now))
            for key, heads in tasks.load_lane_heads(row.pool_id, others).items()
        ]
        view = TaskView(row.id, row.ready_at or now, row.latest_start, row.expected_s, row.amounts)
        return position(row.priority, score(view, row.priority, now=now), self._in_lane.value, lanes)

    def band(self) -> Band | None:
        """When it may start, by its place in its lane; None where too little is known."""
        said = forecast_said(self._said.value)
        return None if said is None else said.at(self._lane, self._in_lane.value + 1)


class _Around:
    """What is asked of the surroundings of a task that waits, and what depends on the answers."""

    def __init__(self, row: TaskRow, asking: Together) -> None:
        self._row = row
        self._pool = asking.add(control.load_pools.question([row.pool]))
        self._tenant = asking.add(control.load_tenants.question([row.tenant]))
        self._use = asking.add(control.load_tenant_use.question([row.tenant_id]))
        self._running = asking.add(overview.load_running.question())
        self._demand = asking.add(dispatch.load_demands.question([row.demand_id]))
        self._held = asking.add(fixed_starts.load_held.question(row.pool_id, but=row.id))
        self._cost = asking.add(accounts.load_task_cost.question(row.id))
        self._budgets = asking.add(accounts.load_budgets.question(tenant=row.tenant_id))
        self._kills = asking.add(kill_store.load.question())
        self._run = None if row.run is None else asking.add(runs.load_around.question(row.run))
        self._limits = asking.add(resources.load.question(row.resource_names))
        self._holders = asking.add(resources.load_held.question())

    def needs(self) -> tuple[Need, ...]:
        """What it needs of which limits, as they are."""
        row, held = self._row, self._holders.value
        named = {r.view.id: r for r in self._limits.value}
        return tuple(
            Need(named[r].name, amount, less_held(named[r].view, held.get(r, 0.0)))
            for r, amount in zip(row.resources, row.amounts, strict=True)
        )

    def surroundings(self, now: float, ahead: int) -> Surroundings:
        """Its pool and tenant, the workers that take it, and what stops it."""
        row, pool, tenant = self._row, self._pool.value[0], self._tenant.value[0]
        labels = tuple(sorted(self._demand.value[row.demand_id].labels))
        offered = overview.load_offered(row.pool_id, tenant=row.tenant_id, labels=labels, fresh_s=WORKER_FRESH_S)
        held, held_for = self._held.value
        return Surroundings(
            now=now,
            pool=row.pool,
            paused_by=None if pool.paused_at is None else pool.paused_by,
            pause_reason=pool.pause_reason,
            tenant_suspended=tenant.status == "suspended",
            slots=pool.settings.slots,
            running=self._running.value.get(row.pool_id, 0),
            free_slots=offered.free if offered.workers else None,
            ahead=ahead,
            limits=limits_in_use(tenant, self._use.value[row.tenant_id]),
            matching=offered.matching > 0,
            labels=labels,
            cost=cost_of_task(self._cost.value, self._budgets.value[0]),
            held=held,
            held_for=held_for,
            stopped=self._stopped(),
        )

    def _stopped(self) -> tuple[Reason, ...]:
        """What kills, and the run that it is a step of, say to it."""
        row, around = self._row, None if self._run is None else self._run.value
        kills = [InForce(k.scope, k.name, k.actor, k.reason) for k in self._kills.value]
        of_run = () if around is None else held_by_run(around, row.id, writes=row.writes)
        return (*killed(kills, tenant=row.tenant, pool=row.pool), *of_run)


def free_slots(pool: PoolId) -> int | None:
    """Slots that connected workers offer to a pool and that nothing runs in; None when none offers any."""
    found = overview.load_offered(pool, fresh_s=WORKER_FRESH_S)
    return found.free if found.workers else None


def _best_score(heads: Sequence[TaskView], priority: PriorityClass, now: float) -> float:
    return max(score(head, priority, now=now) for head in heads)
