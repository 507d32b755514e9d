"""Reads the planner's snapshot and writes its plan. Called inside one transaction, `lock` first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from scheduler.policy.types import (
    DemandId,
    DemandView,
    FairCounter,
    Lane,
    LaneKey,
    LeasedTask,
    Plan,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    TaskView,
    TenantId,
    TenantView,
    WorkerId,
    WorkerView,
)
from scheduler.store import queries

_SQL: Final = queries.load("dispatch.sql") | queries.load("promote.sql")
_CLASSES: Final = tuple(PriorityClass)
_KINDS: Final = {kind.value: kind for kind in ResourceKind}

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


@dataclass(frozen=True, slots=True)
class InFlight:
    """Live leases of one (pool, worker, demand) and what they hold, by position in the demand."""

    pool: PoolId
    worker: WorkerId
    demand: DemandId
    leases: int
    held: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """What a plan reads before it looks at any task. Semaphores come with all permits free: `in_flight` holds them.

    `lanes` names those with ready work in pools that have a free slot.
    """

    promoted: int
    resources: dict[ResourceId, ResourceView]
    pools: list[PoolRow]
    in_flight: list[InFlight]
    workers: list[tuple[WorkerId, dict[PoolId, int]]]
    now: float
    next_due_at: float | None
    lanes: list[LaneKey]


def lock_control(*, promote_max: int, fresh_s: float) -> Control:
    """Take the turn to plan, held until the transaction ends, and read what there is to plan with.

    1. wait for the turn; 2. make due tasks ready; 3. lock the shared limits; 4. read the rest. One round trip: each
    statement sees what the ones before it waited for.
    """
    _, promoted, resources, pools, in_flight, workers, now, due, lanes = queries.fetch_together(
        (_SQL["lock_dispatch"], None),
        (_SQL["promote_due"], {"tasks_max": promote_max}),
        (_SQL["lock_resources"], None),
        (_SQL["read_pools"], None),
        (_SQL["read_in_flight"], None),
        (_SQL["read_workers"], {"fresh_s": fresh_s}),
        (_SQL["read_now"], None),
        (_SQL["next_due"], None),
        (_SQL["ready_lanes"], None),
    )
    return Control(
        promoted=len(promoted),
        resources=_resource_views(resources),
        pools=[PoolRow(*row) for row in pools],
        in_flight=[
            InFlight(pool, WorkerId(worker), demand, leases, tuple(h for h in held if h is not None))
            for pool, worker, demand, leases, *held in in_flight
        ],
        workers=[
            (WorkerId(worker), {PoolId(int(pool)): int(slots) for pool, slots in orjson.loads(offered).items()})
            for worker, offered in workers
        ],
        now=now[0][0],
        next_due_at=due[0][0] if due else None,
        lanes=[
            LaneKey(PoolId(pool), _CLASSES[priority], TenantId(tenant), DemandId(demand))
            for pool, priority, tenant, demand in lanes
        ],
    )


def _resource_views(rows: list[queries.Row]) -> dict[ResourceId, ResourceView]:
    views = {}
    for row in rows:
        resource, kind, level, level_at, rate, burst, permits, margin, factor, blocked_until = row
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
        )
    return views


def load_now() -> float:
    """The database clock, in Unix seconds."""
    row = queries.fetch_one(_SQL["read_now"])
    assert row is not None  # noqa: S101 - a SELECT without FROM gives a row
    return float(row[0])


def _windows(rows: list[queries.Row]) -> dict[int, list[TaskView]]:
    windows: dict[int, list[TaskView]] = {}
    for n, task, ready_at, latest_start, expected_s, amounts in rows:
        view = TaskView(task, ready_at, latest_start, expected_s, tuple(amounts))
        window = windows.get(n)
        if window is None:
            windows[n] = [view]
        else:
            window.append(view)
    return windows


@dataclass(frozen=True, slots=True)
class Field:
    """The fronts of the lanes and who stands in them: tenants with their counters, demands, clocks and credits."""

    lanes: list[Lane]
    tenants: dict[TenantId, TenantView]
    demands: dict[DemandId, DemandView]
    clocks: dict[PriorityClass, float]
    credits: dict[tuple[PoolId, PriorityClass], float]


EMPTY_FIELD: Final = Field([], {}, {}, {}, {})


def load_field(keys: Sequence[LaneKey], *, width: int, demands: Collection[DemandId]) -> Field:
    """The first `width` tasks of each lane by ready time, and by latest start for those with a deadline.

    `demands` are looked up besides those of the lanes. A lane that emptied meanwhile is left out.
    """
    lanes = {
        "pools": queries.array(k.pool for k in keys),
        "priorities": queries.array(int(k.priority) for k in keys),
        "tenants": queries.array(k.tenant for k in keys),
        "demands": queries.array(k.demand for k in keys),
        "width": width,
    }
    by_ready, by_latest_start, tenants, needs, fairness = queries.fetch_together(
        (_SQL["lane_windows"], lanes),
        (_SQL["urgent_windows"], lanes),
        (_SQL["read_tenants"], {"tenants": queries.array({k.tenant for k in keys})}),
        (_SQL["read_demands"], {"demands": queries.array({k.demand for k in keys} | set(demands))}),
        (_SQL["read_fairness"], None),
    )
    fifo, urgent = _windows(by_ready), _windows(by_latest_start)
    clocks: dict[PriorityClass, float] = {}
    credit: dict[tuple[PoolId, PriorityClass], float] = {}
    for pool, priority, value in fairness:
        if pool is None:
            clocks[_CLASSES[priority]] = value
        else:
            credit[PoolId(pool), _CLASSES[priority]] = value
    return Field(
        [
            Lane(key, tuple(fifo[n]), tuple(urgent.get(n, ())), more=len(fifo[n]) >= width)
            for n, key in enumerate(keys, start=1)
            if n in fifo
        ],
        _tenant_views(tenants),
        _demand_views(needs),
        clocks,
        credit,
    )


def _tenant_views(rows: list[queries.Row]) -> dict[TenantId, TenantView]:
    counters: dict[TenantId, dict[PriorityClass, FairCounter]] = {}
    found: dict[TenantId, tuple[float, bool]] = {}
    for tenant, weight, suspended, priority, value, at in rows:
        found[tenant] = (weight, suspended)
        mine = counters.setdefault(tenant, {})
        if priority is not None:
            mine[_CLASSES[priority]] = FairCounter(value, at)
    return {t: TenantView(t, weight, suspended, counters[t]) for t, (weight, suspended) in found.items()}


def _demand_views(rows: list[queries.Row]) -> dict[DemandId, DemandView]:
    return {demand: DemandView(demand, tuple(resources)) for demand, resources in rows}


def load_demands(demands: Sequence[DemandId]) -> dict[DemandId, DemandView]:
    """The named resources behind these demands."""
    return _demand_views(queries.fetch(_SQL["read_demands"], {"demands": queries.array(demands)}))


def worker_views(
    workers: Sequence[tuple[WorkerId, dict[PoolId, int]]], in_flight: Sequence[InFlight]
) -> tuple[WorkerView, ...]:
    """Free slots by worker and pool: offered less what runs there."""
    busy: dict[tuple[WorkerId, PoolId], int] = {}
    for entry in in_flight:
        busy[entry.worker, entry.pool] = busy.get((entry.worker, entry.pool), 0) + entry.leases
    return tuple(
        WorkerView(worker, pool, max(0, slots - busy.get((worker, pool), 0)))
        for worker, offered in workers
        for pool, slots in offered.items()
    )


def pool_views(pools: Sequence[PoolRow], in_flight: Sequence[InFlight]) -> dict[PoolId, PoolView]:
    """Pools with what runs in them now."""
    running: dict[PoolId, int] = {}
    for entry in in_flight:
        running[entry.pool] = running.get(entry.pool, 0) + entry.leases
    return {p.id: PoolView(p.id, p.slots, running.get(p.id, 0), p.paused) for p in pools}


def start(
    plan: Plan,
    *,
    me: WorkerId,
    pools: Sequence[PoolRow],
    resources: dict[ResourceId, ResourceView],
    taken: dict[ResourceId, float],
) -> list[LeasedTask]:
    """Start the plan's tasks under fresh leases; store what it left in the buckets, and the fairness that goes with it.

    Tasks missing from the answer moved meanwhile.
    """
    claim = {
        "tasks": queries.array(s.task for s in plan.starts),
        "workers": queries.array(s.worker for s in plan.starts),
        "me": me,
        "pools": queries.array(p.id for p in pools),
        "ttls_s": queries.array(p.lease_ttl_s for p in pools),
        "timeouts_s": queries.array(p.timeout_s for p in pools),
    }
    drawn = [r for r in plan.levels if resources[r].kind is ResourceKind.TOKEN_BUCKET]
    levels = {
        "resources": queries.array(drawn),
        "levels": queries.array(plan.levels[r] for r in drawn),
        "taken": queries.array(taken.get(r, 0.0) for r in drawn),
        "now": plan.now,
    }
    fairness = {
        "now": plan.now,
        "tenants": queries.array(tenant for tenant, _ in plan.counters),
        "tenant_classes": queries.array(int(priority) for _, priority in plan.counters),
        "values": queries.array(plan.counters.values()),
        "clock_classes": queries.array(int(priority) for priority in plan.clocks),
        "clocks": queries.array(plan.clocks.values()),
        "credit_pools": queries.array(pool for pool, _ in plan.credits),
        "credit_classes": queries.array(int(priority) for _, priority in plan.credits),
        "credits": queries.array(plan.credits.values()),
    }
    rows, _, _ = queries.fetch_together(
        (_SQL["claim_tasks"], claim), (_SQL["apply_levels"], levels), (_SQL["apply_fairness"], fairness)
    )
    return [LeasedTask(*row) for row in rows]
