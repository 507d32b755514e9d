"""Short ways to say a snapshot, for tests of one plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scheduler.policy.types import (
    LaneKey,
    PoolId,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    TaskId,
    TaskView,
    TenantId,
)
from tests.policy.backlog import Backlog


def task(
    number: int,
    *,
    ready_at: float = 0.0,
    latest_start: float | None = None,
    expected_s: float = 1.0,
    amounts: Sequence[float] = (),
) -> TaskView:
    return TaskView(TaskId(number), ready_at, latest_start, expected_s, tuple(amounts))


def wait(
    backlog: Backlog,
    *tasks: TaskView,
    pool: int = 1,
    priority: PriorityClass = PriorityClass.NORMAL,
    tenant: int = 1,
    needs: Mapping[ResourceId, float] | None = None,
) -> LaneKey:
    """Let tasks wait in one lane; `needs` gives the amounts of all of them."""
    needs = needs or {}
    if TenantId(tenant) not in backlog.tenants:
        backlog.tenant(tenant)
    demand = backlog.demand(needs)
    lane = LaneKey(PoolId(pool), priority, TenantId(tenant), demand.id)
    for view in tasks:
        backlog.add(lane, view._replace(amounts=tuple(needs[r] for r in demand.resources)))
    return lane


def bucket(
    *,
    rate: float = 10.0,
    burst: float = 10.0,
    level: float | None = None,
    at: float = 0.0,
    margin: float = 0.0,
    factor: float = 1.0,
    blocked_until: float | None = None,
) -> ResourceView:
    full = burst * (1.0 - margin)
    return ResourceView(
        ResourceId(1),
        ResourceKind.TOKEN_BUCKET,
        full if level is None else level,
        at,
        rate,
        burst,
        margin=margin,
        factor=factor,
        blocked_until=blocked_until,
    )


def semaphore(*, permits: int = 3, held: float = 0.0, factor: float = 1.0) -> ResourceView:
    view = ResourceView(ResourceId(1), ResourceKind.SEMAPHORE, permits - held, 0.0, permits=permits)
    return replace(view, factor=factor)
