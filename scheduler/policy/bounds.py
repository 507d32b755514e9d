"""Decides who is taken in when a pool or a tenant has as much waiting as it may, and who makes room.

It sees depths and classes, never tasks' content. Repetitions of a key are not its business: they add nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from scheduler.errors import FieldError, Unavailable
from scheduler.policy.overload import refuses
from scheduler.policy.types import PoolId, PriorityClass, TaskId, TenantId

RETRY_AFTER_MAX_S: Final = 60.0
RETRY_AFTER_MIN_S: Final = 1.0
RESERVE_MIN: Final = 1_000
RESERVE_FRACTION: Final = 0.1
"""Closer to a bound than this (tasks, or part of the bound) the exact depth is asked for."""


class Overflow(StrEnum):
    """What a full pool does with one more task: refuse it, or end another one to make room."""

    REJECT = "reject"
    SHED_LOWEST = "shed_lowest"
    """The newest ready task of the lowest class that is strictly below the newcomer."""
    SHED_OLDEST = "shed_oldest"
    """The oldest ready task of class low."""


@dataclass(frozen=True, slots=True)
class PoolBounds:
    """What a pool bears. `at_most` waits is more than there can be now, `started_per_s` is how fast it empties."""

    id: PoolId
    name: str
    max_pending: int
    overflow: Overflow
    at_most: int
    level: int = 0
    degrades: bool = False
    predicted_s: float | None = None
    started_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TenantBounds:
    """What a tenant may have waiting, over all pools."""

    id: TenantId
    slug: str
    max_queued: int
    at_most: int


class Newcomer(NamedTuple):
    """A task that asks to be let in, by its place in the request."""

    place: int
    pool: PoolId
    tenant: TenantId
    priority: PriorityClass


class Candidate(NamedTuple):
    """A waiting task that could be ended to make room."""

    task: TaskId
    pool: PoolId
    priority: PriorityClass


@dataclass(frozen=True, slots=True)
class Depths:
    """What waits now, by pool and by tenant. One that is not here is far from its bound."""

    pools: Mapping[PoolId, int]
    tenants: Mapping[TenantId, int]


@dataclass(frozen=True, slots=True)
class Allotment:
    """Who is refused, by place, and which tasks are ended for the others."""

    refusals: Mapping[int, Unavailable]
    shed: tuple[TaskId, ...]


def is_near(at_most: int, more: int, bound: int) -> bool:
    """Whether `more` tasks on top of `at_most` come so close to the bound that the exact depth matters."""
    return at_most + more > bound - max(RESERVE_MIN, int(bound * RESERVE_FRACTION))


def crowded(
    newcomers: Sequence[Newcomer], pools: Mapping[PoolId, PoolBounds], tenants: Mapping[TenantId, TenantBounds]
) -> tuple[list[PoolId], list[TenantId]]:
    """Pools and tenants whose exact depth has to be known, in id order."""
    by_pool = Counter(n.pool for n in newcomers)
    by_tenant = Counter(n.tenant for n in newcomers)
    return (
        sorted(p for p, more in by_pool.items() if is_near(pools[p].at_most, more, pools[p].max_pending)),
        sorted(
            t
            for t, more in by_tenant.items()
            if t in tenants and is_near(tenants[t].at_most, more, tenants[t].max_queued)
        ),
    )


def turn_away(newcomers: Iterable[Newcomer], pools: Mapping[PoolId, PoolBounds]) -> dict[int, Unavailable]:
    """Refusals of those whose class is not taken at the overload level of their pool."""
    return {
        n.place: _overloaded(pools[n.pool], n.priority) for n in newcomers if refuses(pools[n.pool].level, n.priority)
    }


def room_wanted(newcomers: Sequence[Newcomer], pools: Mapping[PoolId, PoolBounds], depths: Depths) -> dict[PoolId, int]:
    """How many tasks each pool that sheds may have to end, at most one for each newcomer."""
    coming = Counter(n.pool for n in newcomers)
    wanted = {}
    for pool, depth in depths.pools.items():
        over = depth + coming[pool] - pools[pool].max_pending
        if over > 0 and pools[pool].overflow is not Overflow.REJECT:
            wanted[pool] = min(over, coming[pool])
    return wanted


def allot(
    newcomers: Sequence[Newcomer],
    pools: Mapping[PoolId, PoolBounds],
    tenants: Mapping[TenantId, TenantBounds],
    depths: Depths,
    candidates: Sequence[Candidate],
) -> Allotment:
    """Let newcomers in, in their order, as far as there is room or somebody to end for them.

    `candidates` come in the order in which they are to be ended. A pool that is over its bound already (it was lowered)
    takes one in for each that goes.
    """
    in_pool, of_tenant = dict(depths.pools), dict(depths.tenants)
    victims = {pool: [c for c in candidates if c.pool == pool] for pool in depths.pools}
    refused_of_tenant: Counter[TenantId] = Counter()
    refused_in_pool: Counter[PoolId] = Counter()
    refusals: dict[int, Unavailable] = {}
    shed: list[TaskId] = []
    for new in newcomers:
        pool = pools[new.pool]
        if new.tenant in of_tenant and of_tenant[new.tenant] >= tenants[new.tenant].max_queued:
            refused_of_tenant[new.tenant] += 1
            nth = refused_of_tenant[new.tenant]
            refusals[new.place] = _tenant_full(tenants[new.tenant], pool, depths, nth)
            continue
        if new.pool in in_pool and in_pool[new.pool] >= pool.max_pending:
            victim = _victim(new, pool, victims[new.pool])
            if victim is None:
                refused_in_pool[new.pool] += 1
                refusals[new.place] = _pool_full(pool, depths, refused_in_pool[new.pool])
                continue
            victims[new.pool].remove(victim)
            shed.append(victim.task)
            in_pool[new.pool] -= 1
        if new.pool in in_pool:
            in_pool[new.pool] += 1
        if new.tenant in of_tenant:
            of_tenant[new.tenant] += 1
    return Allotment(refusals, tuple(shed))


def _victim(new: Newcomer, pool: PoolBounds, candidates: Collection[Candidate]) -> Candidate | None:
    if pool.overflow is Overflow.SHED_LOWEST:
        return next((c for c in candidates if c.priority > new.priority), None)
    return next((c for c in candidates if c.priority is PriorityClass.LOW), None)


def retry_after_s(pool: PoolBounds, over: int) -> float:
    """When there may be room for the `over`-th of those outside, in seconds: each of them gets a time of its own."""
    if pool.started_per_s > 0.0:
        wait_s = over / pool.started_per_s
    else:
        wait_s = RETRY_AFTER_MAX_S if pool.predicted_s is None else pool.predicted_s
    return round(min(RETRY_AFTER_MAX_S, max(RETRY_AFTER_MIN_S, wait_s)), 1)


def _pool_full(pool: PoolBounds, depths: Depths, nth: int) -> Unavailable:
    depth = depths.pools[pool.id]
    after_s = retry_after_s(pool, max(0, depth - pool.max_pending) + nth)
    detail = (
        f"The pool {pool.name!r} is full: {depth:,} tasks wait, and max_pending is {pool.max_pending:,}. "
        f"Try again in {after_s:g} s."
    )
    return _refused(detail, ("pool",), after_s)


def _tenant_full(tenant: TenantBounds, pool: PoolBounds, depths: Depths, nth: int) -> Unavailable:
    depth = depths.tenants[tenant.id]
    after_s = retry_after_s(pool, max(0, depth - tenant.max_queued) + nth)
    detail = (
        f"The tenant {tenant.slug!r} has {depth:,} tasks waiting, and max_queued is {tenant.max_queued:,}. "
        f"Try again in {after_s:g} s."
    )
    return _refused(detail, ("tenant",), after_s)


def _overloaded(pool: PoolBounds, priority: PriorityClass) -> Unavailable:
    wait_s = RETRY_AFTER_MAX_S if pool.predicted_s is None else pool.predicted_s
    after_s = round(min(RETRY_AFTER_MAX_S, max(RETRY_AFTER_MIN_S, wait_s)), 1)
    detail = (
        f"The pool {pool.name!r} is overloaded (level {pool.level}) and takes no new work of class {priority.label}. "
        f"Try again in {after_s:g} s."
    )
    return _refused(detail, ("priority",), after_s)


def _refused(detail: str, loc: tuple[str, ...], after_s: float) -> Unavailable:
    return Unavailable(detail, code="overloaded", errors=(FieldError(loc, detail),), retry_after_s=after_s)
