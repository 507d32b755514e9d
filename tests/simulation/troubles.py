"""Decides what goes wrong in a world: how each attempt ends, and what happens to workers, pools, limits and clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from scheduler.policy.retry import Failure
from scheduler.policy.run_gates import Kills
from scheduler.policy.types import FailureClass, Outcome, PoolId, ResourceId, ResourceKind, TenantId
from tests.simulation.ledger import Record
from tests.simulation.worlds import SUBMITTING_S, Fault, World, source

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

MEND_AFTER_S = 30.0
BUDGET_MAX = 60_000_000
_CLASSES = (
    *[FailureClass.ERROR] * 4,
    FailureClass.OVERLOADED,
    FailureClass.CAPACITY,
    FailureClass.PERMANENT,
    FailureClass.PROVIDER_BILLING,
)


@dataclass(frozen=True, slots=True)
class Fate:
    """How one attempt goes: after `runs_s` it reports, unless its lease ran out while it stalled."""

    runs_s: float
    outcome: Outcome = Outcome.SUCCEEDED
    failure: Failure | None = None
    actual: dict[ResourceId, float] | None = None
    stalls: bool = False
    repeats_after_s: float | None = None


def draw_fate(record: Record, world: World, now: float) -> Fate:
    """The fate of the attempt that starts now."""
    chance = source(world.seed, "attempt", record.id, record.started)
    faults = world.scale.faults
    if any(o.begins <= now < o.ends and o.resource in record.job.needs for o in world.outages):
        return _draw_down(chance)
    fate = _draw_end(record, world, chance)
    if Fault.ESTIMATES in faults and chance.random() < 0.3:
        buckets = [r for r in record.job.needs if world.backlog.resources[r].kind is ResourceKind.TOKEN_BUCKET]
        fate = replace(fate, actual={r: record.job.needs[r] * chance.uniform(0.2, 1.3) for r in buckets})
    if Fault.REPEATS in faults and chance.random() < 0.1:
        fate = replace(fate, repeats_after_s=chance.uniform(0.0, 5.0))
    return fate


def _draw_down(chance: Random) -> Fate:
    """Its provider is down: it says so at once, or it says nothing."""
    if chance.random() < 0.6:
        after_s = chance.choice([None, None, 15.0])
        return Fate(0.2, Outcome.FAILED, Failure(FailureClass.OVERLOADED, "unavailable", after_s))
    return Fate(chance.uniform(2.0, 10.0), Outcome.TIMED_OUT, Failure(FailureClass.TIMEOUT, "no answer"))


def _draw_end(record: Record, world: World, chance: Random) -> Fate:
    faults, runs_s, luck = world.scale.faults, record.job.runs_s, chance.random()
    if luck < 0.04 and Fault.STALLS in faults:
        return Fate(world.lease_ttl_s + chance.uniform(1.0, 20.0), stalls=True)
    if luck < 0.08 and Fault.THROTTLING in faults:
        after_s = chance.choice([None, 0.0, 0.5, 3.0])
        return Fate(0.05, Outcome.FAILED, Failure(FailureClass.THROTTLED, "slow down", after_s))
    if luck < 0.12 and Fault.HAND_BACKS in faults:
        later = chance.choice([None, Failure(FailureClass.CAPACITY, "shutting down", 2.0)])
        return Fate(runs_s / 2, Outcome.RELEASED, later)
    if luck < 0.16 and Fault.FAILURES in faults:
        return Fate(2 * runs_s, Outcome.TIMED_OUT, Failure(FailureClass.TIMEOUT, "took too long"))
    if luck < 0.28 and Fault.FAILURES in faults:
        after_s = chance.choice([None, None, 1.5, 4_000.0])
        return Fate(runs_s, Outcome.FAILED, Failure(chance.choice(_CLASSES), "no", after_s))
    return Fate(runs_s)


def schedule_troubles(run: Simulation) -> None:
    """Let things happen to the world while tasks are submitted, and mend it afterwards."""
    seed, faults = run.world.seed, run.world.scale.faults
    kinds = {
        Fault.DEATHS: (3, _kill_worker),
        Fault.PAUSES: (4, _pause),
        Fault.EDITS: (6, _edit),
        Fault.CLOCK: (2, _step_clock),
        Fault.REPLAYS: (6, _replay),
        Fault.QUOTAS: (3, _edit_quota),
        Fault.BUDGETS: (6, _edit_budget),
        Fault.RUNS: (3, _stop_run),
        Fault.KILLS: (2, _kill),
    }
    for fault, (times, act) in kinds.items():
        if fault not in faults:
            continue
        for number in range(times):
            chance = source(seed, fault, number)
            run.at(chance.uniform(0.0, SUBMITTING_S), partial(act, run, chance))
    first = {**run.world.backlog.resources}
    slots = {pool.id: pool.slots for pool in run.world.backlog.pools.values()}
    run.at(SUBMITTING_S + MEND_AFTER_S, lambda: _mend(run, {r: _declared(v) for r, v in first.items()}, slots))


def _declared(view: object) -> dict[str, float]:
    return {name: getattr(view, name) for name in ("rate", "burst", "permits")}


def _mend(run: Simulation, limits: dict[ResourceId, dict[str, float]], slots: dict[PoolId, int]) -> None:
    backlog = run.world.backlog
    for resource, declared in limits.items():
        run.edit(resource, quota=True, **declared)
    for pool, number in slots.items():
        backlog.pools[pool] = replace(backlog.pools[pool], paused=False, slots=number)
    for tenant, view in backlog.tenants.items():
        backlog.tenants[tenant] = replace(view, suspended=False)
    for budget in run.world.bank.accounts:
        run.world.bank.allow(budget, None)
    backlog.paused.clear()
    backlog.killed.clear()
    backlog.kills = None
    run.say("everything is mended")


def _kill_worker(run: Simulation, chance: Random) -> None:
    workers = sorted({worker for worker, _ in run.world.backlog.workers})
    if workers:
        run.lose(chance.choice(workers))


def _pause(run: Simulation, chance: Random) -> None:
    backlog = run.world.backlog
    if chance.random() < 0.7:
        _set_pool(run, chance.choice(sorted(backlog.pools)), chance.uniform(1.0, 20.0))
    else:
        _set_tenant(run, chance.choice(sorted(backlog.tenants)), chance.uniform(1.0, 20.0))


def _set_pool(run: Simulation, pool: PoolId, for_s: float) -> None:
    pools = run.world.backlog.pools
    pools[pool] = replace(pools[pool], paused=True)
    run.say(f"pool {pool} paused for {for_s:.1f} s")
    run.after(for_s, lambda: pools.update({pool: replace(pools[pool], paused=False)}))


def _set_tenant(run: Simulation, tenant: TenantId, for_s: float) -> None:
    tenants = run.world.backlog.tenants
    tenants[tenant] = replace(tenants[tenant], suspended=True)
    run.say(f"tenant {tenant} suspended for {for_s:.1f} s")
    run.after(for_s, lambda: tenants.update({tenant: replace(tenants[tenant], suspended=False)}))


def _edit(run: Simulation, chance: Random) -> None:
    backlog = run.world.backlog
    luck = chance.random()
    if luck < 0.2:
        pool = chance.choice(sorted(backlog.pools))
        slots = chance.randint(0, 10)
        backlog.pools[pool] = replace(backlog.pools[pool], slots=slots)
        run.say(f"pool {pool} has {slots} slots")
        return
    if luck < 0.3:
        tenant = chance.choice(sorted(backlog.tenants))
        backlog.tenants[tenant] = replace(backlog.tenants[tenant], weight=chance.choice([0.0, 0.5, 1.0, 3.0]))
        return
    resource = chance.choice(sorted(backlog.resources))
    view = backlog.resources[resource]
    if view.kind is ResourceKind.SEMAPHORE:
        run.edit(resource, permits=chance.randint(0, 8))
    elif view.rate <= 0.0:
        return  # its operator paused it; what the provider grants is edited another time
    elif luck < 0.5:
        rate = view.rate
        run.edit(resource, quota=False, rate=0.0)
        run.after(chance.uniform(1.0, 10.0), lambda: run.edit(resource, quota=False, rate=rate))
    else:
        run.edit(resource, rate=view.rate * chance.uniform(0.5, 2.0), burst=view.burst * chance.uniform(0.5, 2.0))


def _step_clock(run: Simulation, chance: Random) -> None:
    run.step_clock(chance.uniform(0.5, 30.0))


def _replay(run: Simulation, chance: Random) -> None:
    records = sorted(run.ledger.tasks.values(), key=lambda record: record.id)
    if records:
        run.replay(chance.choice(records))


def _edit_quota(run: Simulation, chance: Random) -> None:
    tenant = chance.choice(sorted(run.world.backlog.tenants))
    rate, burst = chance.choice([None, 0.5, 2.0, 8.0]), chance.choice([1.0, 5.0])
    run.set_quota(tenant, rate, burst, chance.choice([None, 1, 2, 5]))


def _edit_budget(run: Simulation, chance: Random) -> None:
    """An edit, a top-up for a while, or a month that begins."""
    bank = run.world.bank
    luck, tenant = chance.random(), chance.choice(sorted(bank.of_tenant))
    if luck < 0.3:
        bank.open(tenant, chance.randint(0, BUDGET_MAX))
        run.say(f"tenant {tenant} has another month")
        return
    budget = chance.choice(sorted([*bank.of_tenant.values(), *bank.of_run.values()]))
    limit = bank.accounts[budget].limit
    if luck < 0.6 or limit is None:
        bank.allow(budget, chance.randint(0, BUDGET_MAX))
        run.say(f"budget {budget} is edited to {bank.accounts[budget].limit}")
        return
    bank.allow(budget, limit + chance.randint(1, BUDGET_MAX))
    run.say(f"budget {budget} is topped up to {bank.accounts[budget].limit}")
    run.after(chance.uniform(1.0, 20.0), lambda: bank.allow(budget, limit))


def _stop_run(run: Simulation, chance: Random) -> None:
    """A run is paused or killed, and resumed."""
    backlog = run.world.backlog
    if not backlog.widths:
        return
    one, for_s = chance.choice(sorted(backlog.widths)), chance.uniform(1.0, 20.0)
    stopped, verb = chance.choice([(backlog.paused, "paused"), (backlog.killed, "killed")])
    stopped.add(one)
    run.say(f"run {one} is {verb} for {for_s:.1f} s")
    run.after(for_s, lambda: stopped.discard(one))


def _kill(run: Simulation, chance: Random) -> None:
    """Everything, a pool or a tenant is killed, and let go again."""
    backlog, for_s = run.world.backlog, chance.uniform(1.0, 10.0)
    pool, tenant = chance.choice(sorted(backlog.pools)), chance.choice(sorted(backlog.tenants))
    kills = chance.choice([Kills(everything=True), Kills(pools=frozenset([pool])), Kills(tenants=frozenset([tenant]))])
    backlog.kills = kills
    run.say(f"killed for {for_s:.1f} s: {kills}")

    def lift() -> None:
        backlog.kills = None

    run.after(for_s, lift)
