"""Decides whether a plan kept its promises, by looking at the world before and after it with no planner's eyes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from scheduler.policy.limits import EPSILON, capacity, effective_rate, level_now
from scheduler.policy.order import DEFAULT_ORDER, score
from scheduler.policy.quotas import Quota
from scheduler.policy.types import (
    DemandId,
    Hold,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    ResourceId,
    ResourceKind,
    Snapshot,
    TenantId,
    TenantView,
    WaitReason,
    WorkerId,
)
from tests.policy.backlog import Backlog
from tests.simulation.ledger import promise

LOST_MAX = 0.02
"""The part of a bucket's refill that may be lost while work that could use it waits."""


@dataclass(slots=True)
class Watch:
    """Looks at every plan; keeps what a bucket refilled and lost while work waited for it."""

    backlog: Backlog
    refilled: dict[ResourceId, float] = field(default_factory=lambda: defaultdict(float))
    lost: dict[ResourceId, float] = field(default_factory=lambda: defaultdict(float))
    wanted: dict[ResourceId, tuple[float, float]] = field(default_factory=dict)
    needs: dict[DemandId, tuple[ResourceId, ...]] = field(default_factory=dict)
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
        self.needs = {demand.id: demand.resources for demand in self.backlog.demands.values()}
        self._slots(plan)
        self._rooms()
        self._permits(plan)
        self._order(plan)
        self._priority(snapshot, plan)
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
        in_pool: Counter[PoolId] = Counter()
        at_worker: Counter[tuple[WorkerId, PoolId]] = Counter()
        for start in self.backlog.running.values():
            in_pool[start.lane.pool] += 1
            at_worker[start.worker, start.lane.pool] += 1
        for start in plan.starts:
            pool, seat = start.lane.pool, (start.worker, start.lane.pool)
            used, slots = in_pool[pool], self.backlog.pools[pool].slots
            promise(used <= slots, f"pool {pool} runs {used} tasks in {slots} slots")
            used, slots = at_worker[seat], self.backlog.workers.get(seat, 0)
            promise(used <= slots, f"worker {start.worker} runs {used} tasks in {slots} slots")

    def _rooms(self) -> None:
        running = Counter(start.lane.tenant for start in self.backlog.running.values())
        for tenant in self.backlog.tenants.values():
            room, used = tenant.max_in_flight, running[tenant.id]
            promise(room is None or used <= room, f"tenant {tenant.id} runs {used} tasks and may run {room}")

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
        limits = {hold.resource for hold in plan.holds if hold.reason is WaitReason.RESOURCE}
        wider = {r for hold in plan.holds if hold.reason is WaitReason.RESOURCE for r in self.needs[hold.lane.demand]}
        for lane in self.backlog.lanes:
            hold = held.get(lane)
            if hold is None:
                behind = set(self.needs[lane.demand]) & (limits | wider)
                promise(bool(behind), f"{lane} waits without a reason")
            else:
                promise(self._is_true(hold, now), f"{lane} is said to wait for {hold.reason.value}, which is not so")

    def _is_true(self, hold: Hold, now: float) -> bool:
        pool = self.backlog.pools[hold.lane.pool]
        running = [s for s in self.backlog.running.values() if s.lane.pool == pool.id]
        offers = {w: n for (w, p), n in self.backlog.workers.items() if p == pool.id}
        match hold.reason:
            case WaitReason.POOL_PAUSED:
                return pool.paused
            case WaitReason.TENANT_SUSPENDED:
                return self.backlog.tenants[hold.lane.tenant].suspended
            case WaitReason.TENANT_START_RATE | WaitReason.TENANT_IN_FLIGHT:
                return Quota(self._tenant(hold.lane.tenant), now).closed() is hold.reason
            case WaitReason.NO_WORKER:
                return not offers
            case WaitReason.NO_FREE_SLOT:
                free = sum(n - sum(s.worker == w for s in running) for w, n in offers.items())
                return len(running) >= pool.slots or free <= 0
            case WaitReason.RESOURCE:
                return hold.resource is not None and self._lacks(hold.resource, hold.needed, hold.lane, now)
            case _:
                return False

    def _tenant(self, tenant: TenantId) -> TenantView:
        running = sum(start.lane.tenant == tenant for start in self.backlog.running.values())
        return replace(self.backlog.tenants[tenant], in_flight=running)

    def _lacks(self, resource: ResourceId, amount: float, lane: LaneKey, now: float) -> bool:
        view = self.backlog.resources[resource]
        if view.blocked_until is not None and view.blocked_until > now:
            return True
        if view.kind is ResourceKind.SEMAPHORE:
            return view.permits - self.backlog.held()[resource] < amount
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
            closed = view.blocked_until is not None and view.blocked_until > snapshot.now
            if view.kind is ResourceKind.TOKEN_BUCKET and view.rate > 0.0 and hold.needed <= view.burst and not closed:
                self.wanted[resource] = (level_now(view, now=snapshot.now), snapshot.now)
