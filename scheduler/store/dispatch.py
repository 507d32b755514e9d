"""Reads the planner's snapshot and writes its plan. Called inside one transaction, `lock` first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import orjson

from scheduler.policy.fixed_starts import HELD_AFTER_S, HOLD_MAX_S
from scheduler.policy.lanebook import Arrivals
from scheduler.policy.order import PRESSING_MAX, URGENCY_WINDOW_MIN_S
from scheduler.policy.run_gates import Kills
from scheduler.policy.types import (
    BudgetId,
    BudgetView,
    DemandId,
    DemandView,
    FairCounter,
    Lane,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    RunId,
    SetAside,
    TaskId,
    TaskView,
    TenantId,
    TenantView,
    WorkerId,
    WorkerView,
)
from scheduler.store import queries
from scheduler.store.asking import Question, asked
from scheduler.store.lanes import arrivals_of, bases_of, lane_key, parsed
from scheduler.store.run_views import RunRow, kills_of, run_rows

_SQL: Final = queries.load("dispatch.sql") | queries.load("promote.sql")
_CLASSES: Final = tuple(PriorityClass)
_KINDS: Final = {kind.value: kind for kind in ResourceKind}

_NO_FOLD: Final = 1 << 62
NO_CEILINGS: Final = (0.0, 0.0, 0.0, 0.0)
RESOURCES_PER_TASK_MAX: Final = 8
"""`read_in_flight` sums holds by position; this many positions."""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool as dispatch needs it; `timeout_s` is the default per attempt."""

    id: PoolId
    slots: int
    paused: bool
    lease_ttl_s: float
    timeout_s: float | None


class WorkerRow(NamedTuple):
    """A connected worker: slots offered by pool, whose work it takes (None: anybody's), and its labels."""

    id: WorkerId
    slots: dict[PoolId, int]
    tenant: TenantId | None
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class InFlight:
    """Live leases of one (pool, worker, demand) and what they hold, by position in the demand.

    Steps of runs are counted with what needs the same without a run's leave.
    """

    pool: PoolId
    worker: WorkerId
    demand: DemandId
    leases: int
    held: tuple[float, ...]


class NearStart(NamedTuple):
    """A fixed start that is so near that a slot is kept for it, or (`task` is not None) whose time has come."""

    lane: LaneKey
    task: TaskView | None


@dataclass(frozen=True, slots=True)
class Control:
    """What a plan reads before it looks at any task.

    What live leases hold is in `in_flight`. `arrivals` says, by lane, how often something came since the counts were
    last folded, and its last mark; they were folded `folds` times, and `folded` says the same of each fold since the
    one that was asked about, as far as they are kept. `kills` is what was killed beside single runs;
    `always` names the lanes that every plan looks at. `probing` are the limits whose breaker has a probe under way.
    `steps` counts the leases of runs' steps by demand; `changed` are the runs that were moved since the mark that was
    asked about, up to `mark`. `bases` says what the demands of runs among the arrivals need beside their run's leave.
    """

    now: float
    next_due_at: float | None
    next_miss_at: float | None
    pools: list[PoolRow]
    in_flight: list[InFlight]
    near_starts: list[NearStart]
    workers: list[WorkerRow]
    arrivals: dict[LaneKey, Arrivals]
    folds: int
    folded: list[dict[LaneKey, Arrivals]]
    bases: dict[DemandId, DemandId]
    kills: Kills
    always: list[LaneKey]
    probing: frozenset[ResourceId]
    steps: dict[DemandId, int]
    changed: list[RunId]
    mark: int


def lock() -> dict[ResourceId, ResourceView]:
    """Wait for the turn to plan, held until the transaction ends, and lock all shared limits.

    Semaphores come with all permits free: what is held of them is in `load_control`.
    """
    return _resource_views(queries.fetch(_SQL["lock_dispatch"]))


def take_turn() -> None:
    """Wait for the turn to plan, held until the transaction ends, to write what plans wait for."""
    queries.fetch_one(_SQL["take_turn"])


def promote_due(tasks_max: int) -> int:
    """Move up to `tasks_max` due tasks to `ready`; returns how many moved."""
    return queries.run(_SQL["promote_due"], {"tasks_max": tasks_max})


def load_control(*, fresh_s: float, mark: int, folds: int | None = None) -> Control:
    """Pools, what runs, workers seen within `fresh_s`, what changed about lanes, and about runs since this `mark`.

    `folds`: how often the counts had been folded when it was last asked; None: what was folded does not matter.
    """
    params = {"fresh_s": fresh_s, "held_after_s": HELD_AFTER_S, "held_ahead_s": HOLD_MAX_S, "mark": mark}
    params |= {"folds": _NO_FOLD if folds is None else folds}
    params |= {"pressing_max": PRESSING_MAX, "window_min_s": URGENCY_WINDOW_MIN_S}
    row = queries.fetch_one(_SQL["read_control"], params)
    assert row is not None  # noqa: S101 - a SELECT without FROM gives a row
    now, due_at, miss_at, pools, in_flight, near, workers, arrivals, folds, folded, *rest = row
    kills, always, probing, steps, changed, mark = rest
    came, gone = parsed(arrivals), [lanes or [] for lanes in parsed(folded)]
    return Control(
        now=now,
        next_due_at=due_at,
        next_miss_at=miss_at,
        pools=[PoolRow(*pool) for pool in parsed(pools)],
        in_flight=[
            InFlight(pool, WorkerId(worker), demand, leases, tuple(held))
            for pool, worker, demand, leases, held in parsed(in_flight)
        ],
        near_starts=[_near_start(*row) for row in parsed(near)],
        workers=[
            WorkerRow(
                WorkerId(worker),
                {PoolId(int(pool)): int(slots) for pool, slots in offered.items()},
                tenant,
                frozenset(labels or ()),
            )
            for worker, offered, tenant, labels in parsed(workers)
        ],
        arrivals=arrivals_of(came),
        folds=folds,
        folded=[arrivals_of(lanes) for lanes in gone],
        bases=bases_of((demand, base) for lanes in (came, *gone) for _, _, _, demand, _, _, base in lanes),
        kills=kills_of(parsed(kills)),
        always=[lane_key(*lane) for lane in parsed(always)],
        probing=frozenset(parsed(probing)),
        steps=_counts(*parsed(steps)),
        changed=parsed(changed),
        mark=mark,
    )


def _counts(demands: Iterable[DemandId] | None, leases: Iterable[int] | None) -> dict[DemandId, int]:
    """Leases by demand; None of none."""
    return dict(zip(demands or (), leases or (), strict=True))


def _near_start(pool: int, ready: bool, priority: int, tenant: int, demand: int, *task: Any) -> NearStart:  # noqa: FBT001 - a row
    lane = LaneKey(PoolId(pool), _CLASSES[priority], TenantId(tenant), DemandId(demand))
    if not ready:
        return NearStart(lane, None)
    number, ready_at, latest_start, expected_s, amounts, cost, cost_min = task
    is_fixed = True
    return NearStart(
        lane, TaskView(TaskId(number), ready_at, latest_start, expected_s, tuple(amounts), is_fixed, cost, cost_min)
    )


def _resource_views(rows: list[queries.Row]) -> dict[ResourceId, ResourceView]:
    views = {}
    for row in rows:
        resource, kind, level, level_at, rate, burst, permits, margin, factor, blocked_until, changes_at, *more = row
        ceilings, open_until, paused = more
        semaphore = kind == ResourceKind.SEMAPHORE
        views[resource] = ResourceView(
            id=resource,
            kind=_KINDS[kind],
            level=float(permits) if semaphore else level,
            level_at=level_at,
            rate=rate,
            burst=burst,
            permits=permits,
            margin=margin,
            factor=factor,
            blocked_until=blocked_until,
            ceilings=NO_CEILINGS if ceilings is None else class_parts(orjson.loads(ceilings)),
            changes_at=changes_at,
            open_until=open_until,
            paused=paused,
        )
    return views


def class_parts(by_label: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Figures that are stored by the label of a class, critical first; 0 where none is given."""
    critical, high, normal, low = (float(by_label.get(priority.label, 0.0)) for priority in PriorityClass)
    return critical, high, normal, low


@asked
def load_now() -> Question[float]:
    """The database clock, in Unix seconds."""
    return Question(_SQL["read_now"], {}, lambda rows: float(rows[0][0]))


def _windows(rows: list[queries.Row]) -> tuple[dict[int, list[TaskView]], dict[int, list[TaskView]], str]:
    """Tasks by lane in order, tasks by lane by latest start, and the text of who stands in the lanes."""
    fifo: dict[int, list[TaskView]] = {}
    urgent: dict[int, list[TaskView]] = {}
    *tasks, (*_, standing) = rows
    is_fixed = False  # those that are come by another way
    for n, is_urgent, task, ready_at, latest_start, expected_s, amounts, cost, cost_min, _ in tasks:
        view = TaskView(task, ready_at, latest_start, expected_s, tuple(amounts), is_fixed, cost or 0, cost_min or 0)
        windows = urgent if is_urgent else fifo
        window = windows.get(n)
        if window is None:
            windows[n] = [view]
        else:
            window.append(view)
    return fifo, urgent, standing


@dataclass(frozen=True, slots=True)
class Field:
    """The fronts of the lanes and who stands in them: tenants, their counters, demands, runs, clocks, credits."""

    lanes: list[Lane]
    tenants: dict[TenantId, TenantView]
    demands: dict[DemandId, DemandView]
    clocks: dict[PriorityClass, float]
    credits: dict[tuple[PoolId, PriorityClass], float]
    set_asides: dict[tuple[ResourceId, PriorityClass], SetAside]
    runs: list[RunRow]


EMPTY_FIELD: Final = Field([], {}, {}, {}, {}, {}, [])


def load_field(
    keys: Sequence[LaneKey], *, width: int, demands: Collection[DemandId], fixed: Sequence[NearStart] = ()
) -> Field:
    """The first `width` tasks of each lane by ready time, and by latest start for those with a deadline.

    Those whose fixed start has come stand before the latter. `demands` are looked up besides those of the lanes. A lane
    that emptied meanwhile is left out.
    """
    fifo, urgent, standing = _windows(
        queries.fetch(
            _SQL["read_lanes"],
            {
                "pools": queries.array(k.pool for k in keys),
                "priorities": queries.array(int(k.priority) for k in keys),
                "tenants": queries.array(k.tenant for k in keys),
                "demands": queries.array(k.demand for k in keys),
                "needed": queries.array({k.demand for k in keys} | set(demands)),
                "width": width,
            },
        )
    )
    places = {key: n for n, key in enumerate(keys, start=1)} if fixed else {}
    for lane, task in reversed(fixed):
        if task is not None and lane in places:
            rivals = urgent.get(places[lane], [])
            urgent[places[lane]] = [task, *(rival for rival in rivals if rival.id != task.id)]
    parts = ([] if part is None else part for part in orjson.loads(standing))
    tenants, quotas, needs, runs, clocks, credit, asides, budgets = parts
    return Field(
        lanes=[
            Lane(key, tuple(fifo[n]), tuple(urgent.get(n, ())), more=len(fifo[n]) >= width)
            for n, key in enumerate(keys, start=1)
            if n in fifo
        ],
        tenants=_tenant_views(tenants, quotas, budgets),
        demands=_demand_views(needs),
        clocks={_CLASSES[priority]: value for priority, value in clocks},
        credits={(PoolId(pool), _CLASSES[priority]): value for pool, priority, value in credit},
        set_asides={
            (ResourceId(resource), _CLASSES[priority]): SetAside(TaskId(task), amount, since)
            for resource, priority, task, amount, since in asides
        },
        runs=run_rows(runs),
    )


def _tenant_views(rows: list[Any], quotas: list[Any], budgets: list[Any]) -> dict[TenantId, TenantView]:
    counters: dict[TenantId, dict[PriorityClass, FairCounter]] = {}
    found: dict[TenantId, tuple[float, bool]] = {}
    for tenant, weight, suspended, priority, value, at in rows:
        found[tenant] = (weight, suspended)
        mine = counters.setdefault(tenant, {})
        if priority is not None:
            mine[_CLASSES[priority]] = FairCounter(value, at)
    views = {t: TenantView(t, weight, suspended, counters[t]) for t, (weight, suspended) in found.items()}
    for tenant, rate, burst, level, level_at, room, in_flight in quotas:
        views[tenant] = replace(
            views[tenant],
            start_rate=rate,
            start_burst=burst or 1.0,
            start_level=(burst or 1.0) if level is None else level,
            start_level_at=level_at or 0.0,
            max_in_flight=room,
            in_flight=in_flight or 0,
        )
    for tenant, budget, *amounts in budgets:
        views[tenant] = replace(views[tenant], budget=BudgetView(BudgetId(budget), *amounts))
    return views


def _demand_views(rows: list[Any]) -> dict[DemandId, DemandView]:
    return {
        demand: DemandView(demand, tuple(resources), priced, frozenset(labels), *of_run)
        for demand, resources, priced, labels, *of_run in rows
    }


@asked
def load_demands(demands: Sequence[DemandId]) -> Question[dict[DemandId, DemandView]]:
    """The named resources behind these demands."""
    return Question(_SQL["read_demands"], {"demands": queries.array(demands)}, _demand_views)


def worker_views(workers: Sequence[WorkerRow], in_flight: Sequence[InFlight]) -> tuple[WorkerView, ...]:
    """Free slots by worker and pool: offered less what runs there."""
    busy: dict[tuple[WorkerId, PoolId], int] = {}
    for entry in in_flight:
        busy[entry.worker, entry.pool] = busy.get((entry.worker, entry.pool), 0) + entry.leases
    return tuple(
        WorkerView(row.id, pool, max(0, slots - busy.get((row.id, pool), 0)), row.tenant, row.labels)
        for row in workers
        for pool, slots in row.slots.items()
    )


def pool_views(control: Control) -> dict[PoolId, PoolView]:
    """Pools with what runs in them now, and the slots that are kept for starts ahead."""
    pools, in_flight = control.pools, control.in_flight
    kept = Counter(near.lane.pool for near in control.near_starts if near.task is None)
    running: dict[PoolId, int] = {}
    for entry in in_flight:
        running[entry.pool] = running.get(entry.pool, 0) + entry.leases
    return {p.id: PoolView(p.id, p.slots, running.get(p.id, 0), p.paused, kept[p.id]) for p in pools}
