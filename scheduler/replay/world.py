"""Turns a trace and settings into work: who asks, in which class and pool, what it needs and how long it takes.

Chance has one stream for each purpose, so that settings that differ in one thing see the same traffic.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from random import Random
from typing import Final, TypeVar

from scheduler.policy.scene import Arrival, Scene
from scheduler.policy.types import (
    DemandId,
    DemandView,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    TenantId,
    TenantView,
)
from scheduler.replay.faults import Faults
from scheduler.replay.settings import Counts, LimitModel, Setup, TenantModel
from scheduler.replay.trace import Request, Trace

TENANTS_MAX: Final = 10_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """One request as it is submitted. `refused` names the limit that will never give what it asks."""

    request: Request
    tenant: str
    priority: PriorityClass
    pool: str
    amounts: Mapping[str, float]
    expected_s: float
    runs_s: float
    latest_start_s: float | None
    refused: str | None = None


def lay_out(trace: Trace, setup: Setup) -> tuple[Work, ...]:
    """Each request of the trace as work. Raises ReplayRefused when it names pools that the settings do not have."""
    _check(trace, setup)
    tenant_of = _assigner({name: t.share for name, t in setup.tenants.items()}, setup, "tenants")
    class_of = _assigner({p: c.share for p, c in setup.classes.items()}, setup, "classes", by_chance=True)
    noise = Random(f"{setup.seed} noise")  # noqa: S311 - traffic, not secrets
    works = []
    for request in trace.requests:
        drawn_tenant, drawn_class = tenant_of(request), class_of(request)
        pool = request.pool or setup.pool
        model = setup.pools[pool]
        amounts = {name: setup.limits[name].amount(request) for name in setup.needs(pool)}
        priority = drawn_class if request.priority is None else request.priority
        expected_s = model.expected_s(request)
        deadline_s = setup.classes[priority].deadline_s if priority in setup.classes else None
        works.append(
            Work(
                request=request,
                tenant=request.tenant or drawn_tenant,
                priority=priority,
                pool=pool,
                amounts=amounts,
                expected_s=expected_s,
                runs_s=expected_s * model.factor(noise),
                latest_start_s=None if deadline_s is None else request.at_s + deadline_s - expected_s,
                refused=next((n for n, amount in amounts.items() if not _fits(setup.limits[n], amount)), None),
            )
        )
    return tuple(works)


def _fits(limit: LimitModel, amount: float) -> bool:
    return limit.most <= 0.0 or amount <= limit.most  # a limit of 0 is a pause, and refuses nothing


def _check(trace: Trace, setup: Setup) -> None:
    faults = Faults()
    for pool in sorted({r.pool for r in trace.requests if r.pool is not None} - set(setup.pools)):
        faults.add(f"the trace names the pool {pool!r}, which the settings do not have")
    tenants = len({r.tenant for r in trace.requests})
    if tenants > TENANTS_MAX:
        faults.add(f"the trace names {tenants:,} tenants; a replay takes at most {TENANTS_MAX:,}")
    faults.refuse_if_any(f"{trace.name} cannot be replayed under {setup.name!r}:")


def _assigner(shares: Mapping[T, float], setup: Setup, what: str, *, by_chance: bool = False) -> Callable[[Request], T]:
    """Who a request goes to that does not say it."""
    names = list(shares)
    edges = list(accumulate(shares.values()))
    chance = Random(f"{setup.seed} {what}")  # noqa: S311 - traffic, not secrets

    def assign(request: Request) -> T:
        draw = _hashed(request) if setup.by_content and not by_chance else chance.random()
        return names[min(len(names) - 1, bisect(edges, draw * edges[-1]))]

    return assign


def _hashed(request: Request) -> float:
    """A number in [0, 1) that depends on the sizes of a request alone: what looks alike comes from one tenant."""
    content = f"{request.input_tokens} {request.output_tokens}".encode()
    return int.from_bytes(blake2b(content, digest_size=6).digest()) / 2**48


@dataclass(frozen=True, slots=True)
class Stage:
    """The world of virtual time, and the work as arrivals in it. `label` is the place of the work."""

    scene: Scene
    arrivals: tuple[Arrival, ...]


def set_stage(works: Iterable[Work], setup: Setup) -> Stage:
    """Number everything and put it in place, buckets full, nothing running."""
    works = tuple(works)
    pools = {name: PoolId(n) for n, name in enumerate(setup.pools, 1)}
    limits = {name: ResourceId(n) for n, name in enumerate(setup.limits, 1)}
    slugs = dict.fromkeys(work.tenant for work in works)
    tenants = {slug: TenantId(n) for n, slug in enumerate(slugs, 1)}
    # The planner wants a demand's limits in ascending order, and a demand is what a pool needs.
    needs = {pool: sorted(limits[name] for name in setup.needs(pool)) for pool in pools}
    scene = Scene(
        now=0.0,
        pools={i: PoolView(i, setup.pools[name].slots, 0) for name, i in pools.items()},
        tenants={i: _tenant(i, setup.tenants.get(slug, TenantModel())) for slug, i in tenants.items()},
        resources={i: _view(i, setup.limits[name]) for name, i in limits.items()},
        demands={DemandId(i): DemandView(DemandId(i), tuple(needs[name])) for name, i in pools.items()},
    )
    names = {i: name for name, i in limits.items()}
    arrivals = tuple(
        Arrival(
            at=work.request.at_s,
            lane=LaneKey(pools[work.pool], work.priority, tenants[work.tenant], DemandId(pools[work.pool])),
            amounts=tuple(work.amounts[names[i]] for i in needs[work.pool]),
            runs_s=work.runs_s,
            expected_s=work.expected_s,
            latest_start=work.latest_start_s,
            label=place,
        )
        for place, work in enumerate(works)
        if work.refused is None
    )
    return Stage(scene, arrivals)


def _view(i: ResourceId, limit: LimitModel) -> ResourceView:
    if limit.counts is Counts.CONCURRENCY:
        return ResourceView(i, ResourceKind.SEMAPHORE, float(limit.permits), 0.0, permits=limit.permits)
    full = limit.burst * (1.0 - limit.margin)
    rate = limit.per_minute / 60.0
    critical, high, normal, low = (limit.ceilings.get(p, 0.0) for p in PriorityClass)
    kind, ceilings = ResourceKind.TOKEN_BUCKET, (critical, high, normal, low)
    return ResourceView(i, kind, full, 0.0, rate, limit.burst, margin=limit.margin, ceilings=ceilings)


def _tenant(i: TenantId, tenant: TenantModel) -> TenantView:
    return TenantView(
        i,
        tenant.weight,
        start_rate=tenant.start_rate,
        start_burst=tenant.burst,
        start_level=tenant.burst,
        max_in_flight=tenant.max_in_flight,
    )
