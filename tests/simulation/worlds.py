"""Decides what a random world is made of. A seed and a scale give the same world every time.

Every task and every fault is drawn from a source of its own, so that a smaller scale leaves the rest as it was: that
is what makes a failing world worth shrinking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import NamedTuple

from scheduler.policy.charges import Pricing
from scheduler.policy.retry import RetryRule
from scheduler.policy.types import PoolId, PriorityClass, ResourceId, ResourceKind, RunId, TenantId, WorkerId
from tests.policy.backlog import WIDTH, Backlog
from tests.policy.run_backlog import RunBacklog
from tests.simulation.bank import Bank, price

SUBMITTING_S = 60.0
"""Tasks are submitted and faults happen within this; then the world is mended and has to come to rest."""

EPOCH = 1_796_000_000.0


class Fault(StrEnum):
    """What may go wrong in a world."""

    FAILURES = "failures"
    THROTTLING = "throttling"
    DEATHS = "deaths"
    STALLS = "stalls"
    REPEATS = "repeats"
    HAND_BACKS = "hand_backs"
    CANCELS = "cancels"
    REPLAYS = "replays"
    PAUSES = "pauses"
    EDITS = "edits"
    CLOCK = "clock"
    ESTIMATES = "estimates"
    WINDOWS = "windows"
    QUOTAS = "quotas"
    CEILINGS = "ceilings"
    OUTAGES = "outages"
    BUDGETS = "budgets"
    RUNS = "runs"
    KILLS = "kills"


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is, and which faults it has."""

    tasks: int = 55
    tenants: int = 8
    pools: int = 4
    faults: frozenset[Fault] = frozenset(Fault)


@dataclass(frozen=True, slots=True)
class Job:
    """A task as its submitter and its handler see it. `start_in_s` 0 means at once. A step is of a run, and may write.

    `cost` at most and `cost_min` at least, in nano-dollars; 0 where it is free.
    """

    number: int
    at: float
    pool: PoolId
    tenant: TenantId
    priority: PriorityClass
    needs: dict[ResourceId, float]
    runs_s: float
    expected_s: float
    deadline_s: float | None
    start_in_s: float
    rule: RetryRule
    cancel_at: float | None
    run: RunId | None = None
    writes: bool = False
    cost: int = 0
    cost_min: int = 0
    pricing: Pricing | None = None


@dataclass(frozen=True, slots=True)
class Outage:
    """A provider is down from then until then, in seconds."""

    resource: ResourceId
    begins: float
    ends: float


@dataclass(frozen=True, slots=True)
class World:
    """Where a simulation begins."""

    seed: int
    scale: Scale
    backlog: RunBacklog
    bank: Bank
    outages: tuple[Outage, ...]
    jobs: tuple[Job, ...]
    width: int
    starts_max: int
    lease_ttl_s: float


def source(*names: object) -> Random:
    """Chance of its own for each name, the same on every machine."""
    return Random("/".join(map(str, names)))


def draw_world(seed: int, scale: Scale) -> World:
    chance = source(seed, "world")
    backlog = RunBacklog()
    _draw_limits(backlog, source(seed, "limits"))
    pools = min(scale.pools, chance.randint(1, 4))
    tenants = min(scale.tenants, chance.randint(1, 8))
    _draw_pools(backlog, pools, source(seed, "pools"))
    for number in range(1, tenants + 1):
        _draw_tenant(backlog, number, source(seed, "tenant", number), limited=Fault.QUOTAS in scale.faults)
    if Fault.CEILINGS in scale.faults:
        _draw_ceilings(backlog, source(seed, "ceilings"))
    owners = _draw_runs(backlog, source(seed, "runs")) if Fault.RUNS in scale.faults else {}
    bank = Bank(backlog)
    if Fault.BUDGETS in scale.faults:
        _draw_budgets(bank, owners, source(seed, "budgets"))
    tasks = min(scale.tasks, chance.randint(12, 55))
    bursts = tuple(chance.uniform(0.0, SUBMITTING_S) for _ in range(3))
    cast = _Cast(seed, scale.faults, backlog, bursts, owners)
    jobs = tuple(_draw_job(number, cast) for number in range(1, tasks + 1))
    narrow = Fault.WINDOWS in scale.faults and chance.random() < 0.5
    return World(
        seed=seed,
        scale=scale,
        backlog=backlog,
        bank=bank,
        outages=_draw_outages(backlog, source(seed, "outages")) if Fault.OUTAGES in scale.faults else (),
        jobs=tuple(sorted(jobs, key=lambda job: (job.at, job.number))),
        width=chance.randint(1, 4) if narrow else WIDTH,
        starts_max=chance.randint(1, 6) if narrow else WIDTH,
        lease_ttl_s=chance.choice([5.0, 30.0]),
    )


def _draw_tenant(backlog: Backlog, number: int, chance: Random, *, limited: bool) -> None:
    weight = chance.choice([0.5, 1.0, 1.0, 1.0, 3.0])
    rate = chance.choice([None, None, None, 1.0, 4.0]) if limited else None
    room = chance.choice([None, None, None, 1, 3]) if limited else None
    tenant = backlog.tenant(
        number, weight=weight, start_rate=rate, start_burst=chance.choice([1.0, 5.0]), max_in_flight=room
    )
    backlog.tenants[tenant] = replace(backlog.tenants[tenant], start_level_at=EPOCH)


def _draw_ceilings(backlog: Backlog, chance: Random) -> None:
    for resource, view in backlog.resources.items():
        if view.kind is ResourceKind.TOKEN_BUCKET and chance.random() < 0.3:
            backlog.resources[resource] = replace(view, ceilings=(0.0, 0.0, 0.1, 0.4))


def _draw_limits(backlog: Backlog, chance: Random) -> None:
    for number in range(1, chance.randint(2, 3)):
        burst = chance.choice([5.0, 10.0, 40.0])
        bucket = backlog.bucket(
            number, rate=chance.choice([2.0, 4.0, 10.0]), burst=burst, margin=chance.choice([0.0, 0.02])
        )
        backlog.resources[bucket] = replace(backlog.resources[bucket], level_at=EPOCH)
    for number in range(11, 11 + chance.randint(1, 2)):
        backlog.semaphore(number, permits=chance.randint(2, 6))


def _draw_pools(backlog: Backlog, pools: int, chance: Random) -> None:
    for number in range(1, pools + 1):
        pool = backlog.pool(number, slots=chance.randint(1, 8), worker=None)
        for worker in range(chance.randint(1, 3)):
            backlog.workers[WorkerId(f"w{number}.{worker}"), pool] = chance.randint(1, 4)


def _draw_runs(backlog: RunBacklog, chance: Random) -> dict[RunId, TenantId]:
    """Runs of a few steps each; whose they are."""
    owners = {}
    for number in range(1, 1 + chance.randint(0, 3)):
        run = RunId(number)
        owners[run] = chance.choice(list(backlog.tenants))
        backlog.widths[run] = chance.randint(1, 3)
    return owners


def _draw_budgets(bank: Bank, owners: Mapping[RunId, TenantId], chance: Random) -> None:
    for tenant in bank.backlog.tenants:
        bank.open(tenant, chance.choice([None, chance.randint(0, 60_000_000)]))
    for run in owners:
        if chance.random() < 0.5:
            bank.open(run, chance.randint(0, 30_000_000), of_run=True)


def _draw_outages(backlog: RunBacklog, chance: Random) -> tuple[Outage, ...]:
    begins = [chance.uniform(0.0, SUBMITTING_S - 20.0) for _ in range(chance.randint(0, 2))]
    return tuple(Outage(chance.choice(list(backlog.resources)), at, at + chance.uniform(5.0, 40.0)) for at in begins)


class _Cast(NamedTuple):
    """What a job is drawn for."""

    seed: int
    faults: frozenset[Fault]
    backlog: RunBacklog
    bursts: tuple[float, ...]
    owners: Mapping[RunId, TenantId]


def _draw_job(number: int, cast: _Cast) -> Job:
    seed, faults, backlog, bursts, owners = cast
    chance = source(seed, "job", number)
    runs_s = min(20.0, chance.lognormvariate(-0.5, 1.0))
    needs = chance.sample(list(backlog.resources), chance.choice([0, 1, 1, 1, 2]))
    at = chance.choice([*bursts, chance.uniform(0.0, SUBMITTING_S)])
    tenant = TenantId(1 + chance.randrange(1_000) % len(backlog.tenants))
    step_of = chance.choice(list(owners)) if owners and chance.random() < 0.4 else None
    cost = cost_min = 0
    pricing = None
    if Fault.BUDGETS in faults and chance.random() < 0.5:
        cost, cost_min, pricing = price(chance.randint(1, 5_000), chance.choice([None, 10, 500]))
    return Job(
        number=number,
        at=at,
        pool=PoolId(1 + chance.randrange(1_000) % len(backlog.pools)),
        tenant=tenant if step_of is None else owners[step_of],
        priority=chance.choice(list(PriorityClass)),
        needs={r: _draw_amount(backlog, r, chance) for r in needs},
        runs_s=runs_s,
        expected_s=runs_s if chance.random() < 0.5 else 1.0,
        deadline_s=chance.choice([None, None, 2.0, 10.0]),
        start_in_s=chance.choice([0.0, 0.0, 0.0, 0.0, 7.5]),
        rule=RetryRule(max_attempts=chance.randint(1, 5), initial_s=0.5, max_backoff_s=10.0),
        cancel_at=at + chance.uniform(0.0, 30.0) if Fault.CANCELS in faults and chance.random() < 0.1 else None,
        run=step_of,
        writes=step_of is not None and chance.random() < 0.4,
        cost=cost,
        cost_min=cost_min,
        pricing=pricing,
    )


def _draw_amount(backlog: Backlog, resource: ResourceId, chance: Random) -> float:
    view = backlog.resources[resource]
    if view.kind is ResourceKind.SEMAPHORE:
        return float(chance.choice([1, 1, 1, 2]))
    return chance.choice([1.0, 1.0, 1.0, 2.5, round(view.burst * 0.8, 1), view.burst])
