"""Runs one world in virtual time, with the product's decisions and everything else that can happen around them.

There are two clocks: true time, by which providers count and handlers run, and the database's, which all decisions
see and which may step back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

from scheduler.policy.breaker import Call, verdict_of
from scheduler.policy.plan import make_plan
from scheduler.policy.quotas import Quota
from scheduler.policy.retry import Failure
from scheduler.policy.settlement import CANCEL_GRACE_S
from scheduler.policy.states import TERMINAL
from scheduler.policy.types import (
    FailureClass,
    LeaseId,
    Outcome,
    Plan,
    ResourceId,
    ResourceKind,
    Start,
    TaskId,
    TenantId,
    WorkerId,
)
from tests.simulation.breakers import Breakers
from tests.simulation.ledger import Ledger, Record
from tests.simulation.promises import Broken, promise
from tests.simulation.provider import Meter
from tests.simulation.troubles import Fate, draw_fate, schedule_troubles
from tests.simulation.watch import Watch
from tests.simulation.worlds import EPOCH, SUBMITTING_S, Job, Scale, World, draw_world, source

MENDED_AT_S: Final = SUBMITTING_S + 30.0
PLANS_MAX: Final = 50_000


@dataclass(slots=True)
class Simulation:
    """One run. `log` tells what happened, for the story of a failure."""

    world: World
    ledger: Ledger = field(init=False)
    watch: Watch = field(init=False)
    breakers: Breakers = field(init=False)
    meters: dict[ResourceId, Meter] = field(init=False)
    starts: dict[TenantId, Meter] = field(init=False)
    time: float = 0.0
    skew: float = 0.0
    log: list[tuple[float, str]] = field(default_factory=list)
    silent: set[LeaseId] = field(default_factory=set)
    not_before: dict[TaskId, float] = field(default_factory=dict)
    serial_s: float = 0.0
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        backlog = self.world.backlog
        self.ledger = Ledger(backlog)
        self.watch = Watch(backlog, self.world.bank)
        self.breakers = Breakers(backlog)
        buckets = (r for r in backlog.resources.values() if r.kind is ResourceKind.TOKEN_BUCKET)
        self.meters = {view.id: Meter.of(view, at=0.0) for view in buckets}
        self.starts = {
            view.id: Meter(view.start_rate, view.start_burst, view.start_burst, 0.0)
            for view in backlog.tenants.values()
            if view.start_rate is not None
        }

    # Time

    @property
    def now(self) -> float:
        """The database's clock."""
        return EPOCH + self.time + self.skew

    def at(self, when: float, act: Callable[[], None]) -> None:
        heappush(self._events, (max(when, self.time), next(self._order), act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        self.at(self.time + delay_s, act)

    def when_due(self, due_at: float, act: Callable[[], None]) -> None:
        """Act once the database's clock has come to this time; a clock that stepped back is waited for."""

        def look() -> None:
            if self.now < due_at:
                self.when_due(due_at, act)
            else:
                act()

        self.at(max(self.time + 1e-6, due_at - EPOCH - self.skew), look)

    def say(self, text: str) -> None:
        self.log.append((self.time, text))

    def run(self) -> None:
        """Run until nothing more can happen, then look whether everything came to its end. Raises Broken."""
        for job in self.world.jobs:
            self.at(job.at, _bound(self.submit, job))
        schedule_troubles(self)
        wake_at: float | None = None
        while self._events or wake_at is not None:
            wake = float("inf") if wake_at is None else max(self.time, wake_at - EPOCH - self.skew)
            self.time = min(wake, self._events[0][0]) if self._events else wake
            while self._events and self._events[0][0] <= self.time:
                heappop(self._events)[2]()
            wake_at = self._dispatch()
        self._rest()

    def _rest(self) -> None:
        left = self.ledger.unfinished()
        promise(not left, f"nothing more happens, but task {left[0].id} is {left[0].state}" if left else "")
        for record in self.ledger.tasks.values():
            promise(record.started == len(record.outcomes), f"an attempt of task {record.id} has no outcome")
        promise(not self.ledger.leases, "leases are left over")
        promise(len(self.ledger.tasks) == len(self.world.jobs), "a submitted task is gone")
        bound = MENDED_AT_S + self.serial_s
        promise(self.time <= bound, f"it took {self.time:.0f} s where one thing after the other takes {bound:.0f} s")
        self.watch.at_rest()
        self.world.bank.at_rest()

    # Use cases

    def submit(self, job: Job) -> None:
        record = self.ledger.submit(job, now=self.now)
        told = f"pool {job.pool} {job.priority.label} tenant {job.tenant} {job.needs}"
        if job.run is not None:
            told += f", {'writing ' if job.writes else ''}step of run {job.run}"
        if job.cost:
            told += f", costs {job.cost_min} to {job.cost}"
        self.say(f"task {job.number} submitted: {told}{f', for {job.start_in_s:g} s later' if job.start_in_s else ''}")
        self._await_due(record)
        if job.cancel_at is not None:
            self.at(job.cancel_at, lambda: self.cancel(record))

    def cancel(self, record: Record) -> None:
        if record.state in TERMINAL:
            return
        self.ledger.cancel(record)
        self.say(f"task {record.id} cancelled: now {record.state}")
        lease = record.lease
        if lease is not None:
            chance = source(self.world.seed, "cancel", record.id)
            ack_s = CANCEL_GRACE_S if chance.random() < 0.2 else chance.uniform(0.0, self.world.lease_ttl_s / 3)
            self.after(min(ack_s, CANCEL_GRACE_S), lambda: self.report(lease, Outcome.CANCELLED, None))

    def report(
        self,
        lease: LeaseId,
        outcome: Outcome,
        failure: Failure | None,
        actual: dict[ResourceId, float] | None = None,
    ) -> None:
        """A report, or the reaper in its place."""
        chance = source(self.world.seed, "draw", lease)
        draw = chance.random()
        record = self.ledger.settle(lease, outcome, failure, actual=actual or {}, draw=draw, now=self.now)
        if record is None:
            self.say(f"report of lease {lease} is stale: {outcome}")
            return
        self.say(f"task {record.id} lease {lease} {outcome} {failure.failure_class if failure else ''}: {record.state}")
        self._settle_meters(record, actual or {}, failure)
        self._settle_money(record, outcome, chance)
        self._tell_breakers(record, lease, outcome, failure)
        if failure is not None and failure.retry_after_s is not None:
            self.not_before[record.id] = self.time + failure.retry_after_s
        self._await_due(record)

    def replay(self, record: Record) -> None:
        if self.ledger.replay(record, now=self.now):
            self.not_before.pop(record.id, None)
            self.say(f"task {record.id} replayed")

    def lose(self, worker: WorkerId) -> None:
        """A worker dies: nothing more is heard of it, and its leases expire."""
        chance = source(self.world.seed, "death", worker)
        backlog = self.world.backlog
        pool, slots = next((p, n) for (w, p), n in backlog.workers.items() if w == worker)
        del backlog.workers[worker, pool]
        self.say(f"worker {worker} died")
        for task, start in backlog.running.items():
            lease = self.ledger.tasks[task].lease
            if start.worker == worker and lease is not None:
                self.silent.add(lease)
                self.expire(lease, renewed_at=self.now - chance.uniform(0.0, self.world.lease_ttl_s / 3))
        self.after(chance.uniform(1.0, 20.0), lambda: backlog.workers.update({(WorkerId(f"{worker}+"), pool): slots}))

    def expire(self, lease: LeaseId, *, renewed_at: float) -> None:
        lost = Failure(FailureClass.LOST, "the lease ran out")
        self.serial_s += self.world.lease_ttl_s
        self.when_due(renewed_at + self.world.lease_ttl_s, lambda: self.report(lease, Outcome.LOST, lost))

    def edit(self, resource: ResourceId, *, quota: bool = True, **changes: float) -> None:
        """Change a limit. `quota` False is an operator's own doing, which the provider knows nothing of."""
        backlog = self.world.backlog
        backlog.edit(resource, now=self.now, **changes)
        self.watch.wanted.pop(resource, None)
        if quota and resource in self.meters:
            self.meters[resource].redeclare(backlog.resources[resource], now=self.time)
        self.say(f"limit {resource} edited: {changes}")

    def set_quota(self, tenant: TenantId, rate: float | None, burst: float, room: int | None) -> None:
        """Change a tenant's own limits; what its bucket refilled until now is kept at the old rate."""
        tenants = self.world.backlog.tenants
        level = min(burst, Quota(tenants[tenant], self.now).level)
        tenants[tenant] = replace(
            tenants[tenant],
            start_rate=rate,
            start_burst=burst,
            start_level=level,
            start_level_at=self.now,
            max_in_flight=room,
        )
        self.starts.pop(tenant, None)
        if rate is not None:
            self.starts[tenant] = Meter(rate, burst, level, self.time)
        self.say(f"tenant {tenant} may start {rate}/s in bursts of {burst:g}, and have {room} in flight")

    def step_clock(self, back_s: float) -> None:
        self.skew -= back_s
        self.serial_s += 2 * back_s
        self.watch.wanted.clear()
        self.say(f"the clock stepped back by {back_s:.1f} s")

    # Dispatch and execution

    def _dispatch(self) -> float | None:
        backlog, world = self.world.backlog, self.world
        while True:
            snapshot = backlog.snapshot(self.now, width=world.width)
            self.watch.before(snapshot)
            plan = make_plan(snapshot, starts_max=world.starts_max)
            claimed = self._less_cancelled(plan)
            backlog.carry_out(claimed)
            for start in claimed.starts:
                self._begin(start, plan)
            again = plan.truncated or len(claimed.starts) < len(plan.starts)
            self.watch.after(snapshot, claimed, settled=not again)
            for run in plan.broke:
                backlog.killed.add(run)
                self.say(f"run {run} has used up its money, and ends")
            promise(self.watch.plans < PLANS_MAX, "the planner is asked without end")
            if not again:
                promise(
                    plan.look_again_at is None or plan.look_again_at > self.now,
                    "the planner asks to be called again at the same moment",
                )
                return plan.look_again_at
            promise(bool(plan.starts), "a truncated plan started nothing")

    def _less_cancelled(self, plan: Plan) -> Plan:
        """Now and then a task is cancelled between the plan and its claim."""
        chance = source(self.world.seed, "claim", self.watch.plans)
        jobs = self.ledger.tasks
        gone = [s for s in plan.starts if jobs[s.task].job.cancel_at is not None and chance.random() < 0.3]
        for start in gone:
            self.cancel(jobs[start.task])
        return replace(plan, starts=tuple(s for s in plan.starts if s not in gone))

    def _begin(self, start: Start, plan: Plan) -> None:
        lease = self.ledger.start(start, now=self.now)
        record = self.ledger.tasks[start.task]
        self.world.bank.reserve(start)
        self.breakers.began(plan.probes, start.task, lease)
        self.say(f"task {record.id} started: attempt {record.attempts} lease {lease} worker {start.worker}")
        promise(
            self.time >= self.not_before.get(record.id, 0.0) - 1e-6,
            f"task {record.id} was tried again before the time the provider named",
        )
        for resource, amount in zip(sorted(record.job.needs), start.amounts, strict=True):
            if resource in self.meters:
                self.meters[resource].arrive(amount, now=self.time, what=f"task {record.id} at limit {resource}")
                self.serial_s += amount / self._slowest_rate(resource)
        tenant = start.lane.tenant
        if tenant in self.starts:
            self.starts[tenant].arrive(1.0, now=self.time, what=f"task {record.id} of tenant {tenant}")
            self.serial_s += 1.0 / self.starts[tenant].rate
        self._execute(lease, draw_fate(record, self.world, self.time))

    def _slowest_rate(self, resource: ResourceId) -> float:
        return 0.98 * self.world.backlog.resources[resource].rate or 1.0

    def _execute(self, lease: LeaseId, fate: Fate) -> None:
        self.serial_s += fate.runs_s

        def finish() -> None:
            if lease not in self.silent:
                self.report(lease, fate.outcome, fate.failure, fate.actual)

        if fate.stalls:
            self.expire(lease, renewed_at=self.now)
        self.after(fate.runs_s, finish)
        if fate.repeats_after_s is not None:
            self.after(fate.runs_s + fate.repeats_after_s, finish)

    def _await_due(self, record: Record) -> None:
        due_at = record.due_at
        if due_at is None:
            return
        self.serial_s += max(0.0, due_at - self.now) + 1.0

        def promote() -> None:
            if self.ledger.promote(record, now=self.now):
                self.say(f"task {record.id} is ready")

        self.when_due(due_at, promote)

    def _settle_money(self, record: Record, outcome: Outcome, chance: Random) -> None:
        usage = {"input_uncached": chance.randint(0, 9_000), "output_visible": chance.randint(0, 2_000)}
        elapsed_s = self.now - record.began_at
        told = usage if chance.random() < 0.6 else {}
        self.world.bank.settle(record.reservation, record.job.pricing, outcome, elapsed_s, told)
        record.reservation = None

    def _tell_breakers(self, record: Record, lease: LeaseId, outcome: Outcome, failure: Failure | None) -> None:
        asked_s = None if failure is None else failure.retry_after_s
        took_s = max(0.0, self.now - record.began_at)
        call = Call(lease, verdict_of(outcome, failure), record.began_at, took_s, asked_s)
        for resource, for_s in self.breakers.ended(record.job.needs, call, now=self.now).items():
            self.serial_s += for_s
            self.watch.wanted.pop(resource, None)
            self.say(f"the breaker of limit {resource} opens for {for_s:.1f} s")

    def _settle_meters(self, record: Record, actual: dict[ResourceId, float], failure: Failure | None) -> None:
        for resource, amount in record.job.needs.items():
            meter = self.meters.get(resource)
            if meter is None:
                continue
            if resource in actual:
                meter.correct(amount - actual[resource], now=self.time)
                self.serial_s += max(0.0, actual[resource] - amount) / self._slowest_rate(resource)
                self.watch.wanted.pop(resource, None)
            if failure is not None and failure.failure_class is FailureClass.THROTTLED:
                closed_s = 1.0 if failure.retry_after_s is None else failure.retry_after_s
                meter.closed_until = max(meter.closed_until, self.time + closed_s)
                self.serial_s += closed_s
                self.watch.wanted.pop(resource, None)


def _bound(act: Callable[[Job], None], job: Job) -> Callable[[], None]:
    return lambda: act(job)


def play(seed: int, scale: Scale | None = None) -> Simulation:
    """Run one world to its end. A promise that does not hold raises Broken with the simulation as `run`."""
    simulation = Simulation(draw_world(seed, scale or Scale()))
    try:
        simulation.run()
    except AssertionError as broken:
        raise Failed(simulation, str(broken)) from broken
    return simulation


class Failed(Broken):
    """A run that broke a promise."""

    def __init__(self, simulation: Simulation, sentence: str) -> None:
        super().__init__(sentence)
        self.simulation = simulation
        self.sentence = sentence
