"""Decides whether a plan kept its promises, by looking at the world before and after it with no planner's eyes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.policy.limits import EPSILON, capacity, effective_rate, level_now
from scheduler.policy.order import DEFAULT_ORDER, score
from scheduler.policy.quotas import Quota
from scheduler.policy.types import (
    BudgetId,
    DemandId,
    Hold,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    ResourceId,
    ResourceKind,
    RunId,
    Snapshot,
    TenantId,
    TenantView,
    WaitReason,
    WorkerId,
)
from tests.policy.run_backlog import RunBacklog
from tests.simulation.bank import Bank
from tests.simulation.promises import Broken, promise

LOST_MAX = 0.02
"""The part of a bucket's refill that may be lost while work that could use it waits."""


@dataclass(slots=True)
class Crowd:
    """What runs, counted in every way that something is limited."""

    in_pool: Counter[PoolId] = field(default_factory=Counter)
    at_worker: Counter[tuple[WorkerId, PoolId]] = field(default_factory=Counter)
    of_tenant: Counter[TenantId] = field(default_factory=Counter)
    of_run: Counter[RunId] = field(default_factory=Counter)
    writing: Counter[RunId] = field(default_factory=Counter)

    @classmethod
    def of(cls, backlog: RunBacklog, run_of: Mapping[DemandId, RunId]) -> Crowd:
        """Count."""
        crowd = cls()
        writes = {d.id for d in backlog.demands.values() if d.writes}
        for start in backlog.running.values():
            lane = start.lane
            crowd.in_pool[lane.pool] += 1
            crowd.at_worker[start.worker, lane.pool] += 1
            crowd.of_tenant[lane.tenant] += 1
            run = run_of.get(lane.demand)
            if run is not None:
                crowd.of_run[run] += 1
                crowd.writing[run] += lane.demand in writes
        return crowd


@dataclass(slots=True)
class Watch:
    """Looks at every plan; keeps what a bucket refilled and lost while work waited for it."""

    backlog: RunBacklog
    bank: Bank
    refilled: dict[ResourceId, float] = field(default_factory=lambda: defaultdict(float))
    lost: dict[ResourceId, float] = field(default_factory=lambda: defaultdict(float))
    wanted: dict[ResourceId, tuple[float, float]] = field(default_factory=dict)
    needs: dict[DemandId, tuple[ResourceId, ...]] = field(default_factory=dict)
    run_of: dict[DemandId, RunId] = field(default_factory=dict)
    crowd: Crowd = field(default_factory=Crowd)
    plans: int = 0

    def before(self, snapshot: Snapshot) -> None:
        """Account for what refilled since the last plan, where work was waiting for it."""
        for resource, (level, then) in self.wanted.items():
            view = snapshot.resources[resource]
            refill = effective_rate(view) * max(0.0, snapshot.now - then)
            self.refilled[resource] += refill
            self.lost[resource] += max(0.0, level + refill - capacity(view))
        self.wanted.clear()

    def after(self, snapshot: Snapshot, plan: Plan, *, settled: bool) -> None:
        """The plan was carried out: nothing is exceeded, lanes kept their order, and who waits has a true reason."""
        self.plans += 1
        if len(self.needs) != len(self.backlog.demands):
            self.needs = {demand.id: demand.resources for demand in self.backlog.demands.values()}
            self.run_of = {d.id: d.run for d in self.backlog.demands.values() if d.run is not None}
        self.crowd = Crowd.of(self.backlog, self.run_of)
        if plan.starts:
            self._slots(plan)
            self._rooms(plan)
            self._permits(plan)
            self._order(plan)
            self._priority(snapshot, plan)
            self._doors(snapshot, plan)
            self._steps(plan)
        if settled:
            self._reasons(plan, snapshot.now)
            self._want(snapshot, plan)

    def at_rest(self) -> None:
        for resource, refilled in self.refilled.items():
            lost = self.lost[resource]
            promise(
                lost <= LOST_MAX * refilled + EPSILON, f"bucket {resource} lost {lost:.2f} of {refilled:.2f} tokens"
            )

    def _slots(self, plan: Plan) -> None:
        for start in plan.starts:
            pool, seat = start.lane.pool, (start.worker, start.lane.pool)
            used, slots = self.crowd.in_pool[pool], self.backlog.pools[pool].slots
            promise(used <= slots, f"pool {pool} runs {used} tasks in {slots} slots")
            used, slots = self.crowd.at_worker[seat], self.backlog.workers.get(seat, 0)
            promise(used <= slots, f"worker {start.worker} runs {used} tasks in {slots} slots")

    def _rooms(self, plan: Plan) -> None:
        for tenant in {start.lane.tenant for start in plan.starts}:
            room, used = self.backlog.tenants[tenant].max_in_flight, self.crowd.of_tenant[tenant]
            promise(room is None or used <= room, f"tenant {tenant} runs {used} tasks and may run {room}")

    def _doors(self, snapshot: Snapshot, plan: Plan) -> None:
        """Nothing calls a provider whose breaker is open; one call shows whether it is back."""
        through = Counter(r for start in plan.starts for r in self.needs[start.lane.demand])
        for resource, calls in through.items():
            view = snapshot.resources[resource]
            if view.open_until is not None:
                may = 0 if snapshot.now < view.open_until or view.probing else 1
                promise(calls <= may, f"{calls} calls go through the breaker of limit {resource} instead of {may}")

    def _steps(self, plan: Plan) -> None:
        """What was killed or paused starts nothing; runs keep to their width, and write one at a time and in turn."""
        backlog = self.backlog
        for start in plan.starts:
            lane, run = start.lane, self.run_of.get(start.lane.demand)
            promise(not self._is_killed(lane), f"task {start.task} started after a kill")
            if run is None:
                continue
            promise(
                run not in backlog.paused | backlog.killed, f"task {start.task} started in run {run}, which may not"
            )
            used, width = self.crowd.of_run[run], backlog.widths[run]
            promise(used <= width, f"run {run} has {used} steps at once and may have {width}")
            promise(self.crowd.writing[run] <= 1, f"run {run} writes twice at once")
            if lane.demand in self._writes(run):
                mine, first = backlog.started[start.task], self._next_write(run)
                earlier = first is not None and first < (mine.ready_at, mine.id)
                promise(not earlier, f"task {start.task} wrote before its turn in run {run}")

    def _is_killed(self, lane: LaneKey) -> bool:
        kills = self.backlog.kills
        return kills is not None and (kills.everything or lane.pool in kills.pools or lane.tenant in kills.tenants)

    def _writes(self, run: RunId) -> set[DemandId]:
        return {d.id for d in self.backlog.demands.values() if d.run == run and d.writes}

    def _next_write(self, run: RunId) -> tuple[float, int] | None:
        """The writing step that waits longest, also those that were tried and come again."""
        writes = self._writes(run)
        waiting = [
            (t.ready_at, t.id) for key, tasks in self.backlog.lanes.items() if key.demand in writes for t in tasks
        ]
        again = [(at, task) for task, (demand, at) in self.backlog.coming_back.items() if demand in writes]
        return min([*waiting, *again], default=None)

    def _permits(self, plan: Plan) -> None:
        drawn = {r for s in plan.starts for r in self.needs[s.lane.demand]}
        held = self.backlog.held()
        for resource in drawn:
            view = self.backlog.resources[resource]
            if view.kind is ResourceKind.SEMAPHORE:
                promise(held[resource] <= view.permits, f"{held[resource]:g} of {view.permits} permits are held")

    def _order(self, plan: Plan) -> None:
        """First in, first out: nothing without a deadline waits that is older than one that was started."""
        youngest: dict[LaneKey, tuple[float, int]] = {}
        for start in plan.starts:
            promise(not self.backlog.pools[start.lane.pool].paused, f"task {start.task} started in a paused pool")
            view = self.backlog.started[start.task]
            if view.latest_start is None:
                place = (view.ready_at, int(view.id))
                youngest[start.lane] = max(place, youngest.get(start.lane, place))
        for lane, place in youngest.items():
            calm = next((t for t in self.backlog.lanes.get(lane, []) if t.latest_start is None), None)
            promise(calm is None or (calm.ready_at, calm.id) > place, f"task {calm and calm.id} was passed in its lane")

    def _priority(self, snapshot: Snapshot, plan: Plan) -> None:
        """Nothing starts while a task of another class with a higher score waits for a slot, but what is owed."""
        best: dict[tuple[PoolId, PriorityClass], float] = {}
        for hold in plan.holds:
            key, tasks = hold.lane, self.backlog.lanes.get(hold.lane)
            if hold.reason is WaitReason.NO_FREE_SLOT and tasks:
                points = score(tasks[0], key.priority, now=snapshot.now)
                best[key.pool, key.priority] = max(points, best.get((key.pool, key.priority), points))
        starts = Counter(start.lane.pool for start in plan.starts)
        for start in plan.starts:
            pool, mine = start.lane.pool, start.lane.priority
            points = score(self.backlog.started[start.task], mine, now=snapshot.now)
            passed = [c for (p, c), waits in best.items() if p == pool and c != mine and waits > points + 1e-6]
            credit = snapshot.credits.get((pool, mine), 0.0) + DEFAULT_ORDER.shares[mine] * starts[pool]
            served = any(aside is None and priority == mine for (_, priority), aside in plan.set_asides.items())
            promise(
                not passed or served or credit >= 1.0 - 1e-6,
                f"task {start.task} passed the {passed and passed[0].label} class",
            )

    def _reasons(self, plan: Plan, now: float) -> None:
        held = {hold.lane: hold for hold in plan.holds}
        # What a head waits for is spoken for: the lanes behind it say nothing of their own.
        heads = [h for h in plan.holds if h.reason in (WaitReason.RESOURCE, WaitReason.BREAKER_OPEN)]
        spoken_for = {r for hold in heads for r in self.needs[hold.lane.demand]}
        for lane in self.backlog.lanes:
            hold = held.get(lane)
            if hold is None:
                if spoken_for.isdisjoint(self.needs[lane.demand]):
                    raise Broken(f"{lane} waits without a reason")
            elif not self._is_true(hold, now):
                raise Broken(f"{lane} is said to wait for {hold.reason.value}, which is not so")

    def _is_true(self, hold: Hold, now: float) -> bool:
        lane, backlog = hold.lane, self.backlog
        pool = backlog.pools[lane.pool]
        match hold.reason:
            case WaitReason.POOL_PAUSED | WaitReason.TENANT_SUSPENDED:
                is_pool = hold.reason is WaitReason.POOL_PAUSED
                return pool.paused if is_pool else backlog.tenants[lane.tenant].suspended
            case WaitReason.TENANT_START_RATE | WaitReason.TENANT_IN_FLIGHT:
                return Quota(self._tenant(lane.tenant), now).closed() is hold.reason
            case WaitReason.TENANT_BUDGET:
                return self._cannot_pay(self.bank.of_tenant.get(lane.tenant), lane)
            case WaitReason.BREAKER_OPEN:
                return any(backlog.resources[r].open_until is not None for r in self.needs[lane.demand])
            case WaitReason.NO_WORKER:
                return not any(p == pool.id for _, p in backlog.workers)
            case WaitReason.NO_FREE_SLOT:
                seats = [(seat, n) for seat, n in backlog.workers.items() if seat[1] == pool.id]
                free = sum(n - self.crowd.at_worker[seat] for seat, n in seats)
                return self.crowd.in_pool[pool.id] >= pool.slots or free <= 0
            case WaitReason.RESOURCE:
                return hold.resource is not None and self._lacks(hold.resource, hold.needed, lane, now)
            case _:
                return self._is_stopped(hold.reason, lane)

    def _is_stopped(self, reason: WaitReason, lane: LaneKey) -> bool:
        """Whether a kill keeps a lane back, or its run does, as is said."""
        backlog, run = self.backlog, self.run_of.get(lane.demand)
        if reason is WaitReason.KILLED and self._is_killed(lane):
            return True
        if run is None:
            return False
        match reason:
            case WaitReason.KILLED:
                return run in backlog.killed
            case WaitReason.RUN_NOT_ACTIVE:
                return run in backlog.paused
            case WaitReason.RUN_WIDTH:
                return self.crowd.of_run[run] >= backlog.widths[run]
            case WaitReason.RUN_WRITE_LOCK:
                return self._may_not_write(run, lane)
            case WaitReason.RUN_BUDGET:
                return self._cannot_pay(self.bank.of_run.get(run), lane)
            case _:
                return False

    def _may_not_write(self, run: RunId, lane: LaneKey) -> bool:
        head = self.backlog.lanes[lane][0]
        first = self._next_write(run)
        return self.crowd.writing[run] > 0 or (first is not None and first < (head.ready_at, head.id))

    def _cannot_pay(self, budget: BudgetId | None, lane: LaneKey) -> bool:
        """Whether some task of the lane needs more at least than is neither spent nor reserved."""
        room = None if budget is None else self.bank.room(budget)
        return room is not None and any(task.cost and task.cost_min > room for task in self.backlog.lanes[lane])

    def _tenant(self, tenant: TenantId) -> TenantView:
        return replace(self.backlog.tenants[tenant], in_flight=self.crowd.of_tenant[tenant])

    def _lacks(self, resource: ResourceId, amount: float, lane: LaneKey, now: float) -> bool:
        view = self.backlog.resources[resource]
        if view.blocked_until is not None and view.blocked_until > now:
            return True
        if view.kind is ResourceKind.SEMAPHORE:
            return view.permits - self.backlog.held().get(resource, 0.0) < amount
        floor = view.ceilings[lane.priority] * capacity(view)
        free = level_now(view, now=now) - self._set_aside(resource, lane, now)
        return view.rate <= 0.0 or amount > view.burst or free < floor + min(amount, capacity(view) - floor)

    def _set_aside(self, resource: ResourceId, lane: LaneKey, now: float) -> float:
        """What is kept in a bucket for tasks other than this lane's."""
        mine = {task.id for task in self.backlog.lanes[lane]}
        rate = effective_rate(self.backlog.resources[resource])
        return sum(
            min(aside.amount, DEFAULT_ORDER.shares[priority] * rate * max(0.0, now - aside.since))
            for (place, priority), aside in self.backlog.set_asides_in_force().items()
            if place == resource and aside.task not in mine
        )

    def _want(self, snapshot: Snapshot, plan: Plan) -> None:
        for hold in plan.holds:
            resource = hold.resource
            if resource is None or len(self.needs[hold.lane.demand]) > 1:
                continue
            view = self.backlog.resources[resource]
            closed = view.open_until is not None or (
                view.blocked_until is not None and view.blocked_until > snapshot.now
            )
            if view.kind is ResourceKind.TOKEN_BUCKET and view.rate > 0.0 and hold.needed <= view.burst and not closed:
                self.wanted[resource] = (level_now(view, now=snapshot.now), snapshot.now)
