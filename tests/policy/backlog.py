"""What waits and what runs, in memory: the part of the world that a planner's snapshot is taken of.

It stands in for nothing of ours: it is the world that the planner is tried in. Every rule of what may start is left to
the planner, so that a fault of the planner shows.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.policy.fairness import correction
from scheduler.policy.limits import capacity, level_now
from scheduler.policy.types import (
    DemandId,
    DemandView,
    FairCounter,
    Lane,
    LaneKey,
    Plan,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    SetAside,
    Snapshot,
    Start,
    TaskId,
    TaskView,
    TenantId,
    TenantView,
    WorkerId,
    WorkerView,
)

WIDTH = 1_000


def _place(task: TaskView) -> tuple[float, int]:
    return task.ready_at, task.id


def _latest_start(task: TaskView) -> tuple[float, int]:
    assert task.latest_start is not None
    return task.latest_start, task.id


@dataclass(slots=True)
class Backlog:
    """Pools, tenants, limits and lanes, by small numbers. A demand is found or made from the resources it needs."""

    pools: dict[PoolId, PoolView] = field(default_factory=dict)
    workers: dict[tuple[WorkerId, PoolId], int] = field(default_factory=dict)
    tenants: dict[TenantId, TenantView] = field(default_factory=dict)
    resources: dict[ResourceId, ResourceView] = field(default_factory=dict)
    demands: dict[tuple[ResourceId, ...], DemandView] = field(default_factory=dict)
    lanes: dict[LaneKey, list[TaskView]] = field(default_factory=dict)
    deadlines: dict[LaneKey, list[TaskView]] = field(default_factory=dict)
    running: dict[TaskId, Start] = field(default_factory=dict)
    started: dict[TaskId, TaskView] = field(default_factory=dict)
    clocks: dict[PriorityClass, float] = field(default_factory=dict)
    credits: dict[tuple[PoolId, PriorityClass], float] = field(default_factory=dict)
    set_asides: dict[tuple[ResourceId, PriorityClass], SetAside] = field(default_factory=dict)

    # Building

    def pool(self, number: int = 1, *, slots: int = 10, worker: str | None = "w") -> PoolId:
        """A pool; with one worker for all its slots, or with none."""
        pool = PoolId(number)
        self.pools[pool] = PoolView(pool, slots, 0)
        if worker is not None:
            self.workers[WorkerId(f"{worker}{number}"), pool] = slots
        return pool

    def tenant(
        self,
        number: int,
        *,
        weight: float = 1.0,
        start_rate: float | None = None,
        start_burst: float = 1.0,
        max_in_flight: int | None = None,
    ) -> TenantId:
        tenant = TenantId(number)
        self.tenants[tenant] = TenantView(
            tenant,
            weight,
            start_rate=start_rate,
            start_burst=start_burst,
            start_level=start_burst,
            max_in_flight=max_in_flight,
        )
        return tenant

    def bucket(
        self, number: int, *, rate: float, burst: float, level: float | None = None, margin: float = 0.0
    ) -> ResourceId:
        full = burst * (1.0 - margin)
        view = ResourceView(
            ResourceId(number),
            ResourceKind.TOKEN_BUCKET,
            full if level is None else level,
            0.0,
            rate,
            burst,
            margin=margin,
        )
        self.resources[view.id] = view
        return view.id

    def semaphore(self, number: int, *, permits: int) -> ResourceId:
        view = ResourceView(ResourceId(number), ResourceKind.SEMAPHORE, permits, 0.0, permits=permits)
        self.resources[view.id] = view
        return view.id

    def demand(self, needs: Mapping[ResourceId, float]) -> DemandView:
        ids = tuple(sorted(needs))
        return self.demands.setdefault(ids, DemandView(DemandId(len(self.demands) + 1), ids))

    # Moving

    def add(self, lane: LaneKey, task: TaskView) -> None:
        insort(self.lanes.setdefault(lane, []), task, key=_place)
        if task.latest_start is not None:
            insort(self.deadlines.setdefault(lane, []), task, key=_latest_start)

    def withdraw(self, lane: LaneKey, task: TaskId) -> TaskView | None:
        """Take a waiting task away; None when it does not wait here."""
        waiting = self.lanes.get(lane, [])
        for index, view in enumerate(waiting):
            if view.id == task:
                del waiting[index]
                if view.latest_start is not None:
                    self.deadlines[lane].remove(view)
                if not waiting:
                    del self.lanes[lane]
                return view
        return None

    def carry_out(self, plan: Plan) -> None:
        """Start what the plan says, and store what it leaves behind."""
        for start in plan.starts:
            view = self.withdraw(start.lane, start.task)
            assert view is not None, f"task {start.task} started without waiting"
            self.running[start.task] = start
            self.started[start.task] = view
        for resource, level in plan.levels.items():
            if self.resources[resource].kind is ResourceKind.TOKEN_BUCKET:
                self.resources[resource] = replace(self.resources[resource], level=level, level_at=plan.now)
        for (tenant, priority), value in plan.counters.items():
            known = self.tenants[tenant]
            counters = {**known.counters, priority: FairCounter(value, plan.now)}
            self.tenants[tenant] = replace(known, counters=counters)
        for tenant, level in plan.start_levels.items():
            self.tenants[tenant] = replace(self.tenants[tenant], start_level=level, start_level_at=plan.now)
        self.clocks.update(plan.clocks)
        self.credits.update(plan.credits)
        for place, aside in plan.set_asides.items():
            if aside is None:
                self.set_asides.pop(place, None)
            else:
                self.set_asides[place] = aside

    def end(self, task: TaskId, *, took_s: float | None = None) -> None:
        """Free the slot and the permits that a running task holds; correct its tenant's counter by what it took."""
        key = self.running.pop(task).lane
        view = self.started.pop(task)
        known = self.tenants[key.tenant]
        counter = known.counters.get(key.priority)
        if took_s is None or counter is None:
            return
        beyond = correction(expected=view.expected_s, actual=took_s, weight=known.weight)
        counters = {**known.counters, key.priority: counter._replace(value=counter.value + beyond)}
        self.tenants[key.tenant] = replace(known, counters=counters)

    def edit(self, resource: ResourceId, *, now: float, **changes: float) -> None:
        """Change a limit; what it refilled until now is kept at the old rate."""
        view = self.resources[resource]
        if view.kind is ResourceKind.TOKEN_BUCKET:
            view = replace(view, level=level_now(view, now=now), level_at=now)
        view = replace(view, **changes)  # type: ignore[arg-type]  # the names are those of the view's numbers
        if view.kind is ResourceKind.TOKEN_BUCKET:
            view = replace(view, level=min(view.level, capacity(view)))
        self.resources[resource] = view

    # Looking

    def waiting(self) -> int:
        return sum(map(len, self.lanes.values()))

    def held(self) -> dict[ResourceId, float]:
        """What running tasks hold of each resource."""
        needs = {demand.id: demand.resources for demand in self.demands.values()}
        held: dict[ResourceId, float] = {}
        for start in self.running.values():
            for resource, amount in zip(needs[start.lane.demand], start.amounts, strict=True):
                held[resource] = held.get(resource, 0.0) + amount
        return held

    def snapshot(self, now: float, *, width: int = WIDTH) -> Snapshot:
        """What a plan at `now` sees, with at most `width` tasks of each lane."""
        in_pool: dict[PoolId, int] = defaultdict(int)
        of_tenant: dict[TenantId, int] = defaultdict(int)
        at_worker: dict[tuple[WorkerId, PoolId], int] = Counter()
        for start in self.running.values():
            in_pool[start.lane.pool] += 1
            of_tenant[start.lane.tenant] += 1
            at_worker[start.worker, start.lane.pool] += 1
        held = self.held()
        return Snapshot(
            now=now,
            pools={p.id: replace(p, running=in_pool[p.id]) if p.id in in_pool else p for p in self.pools.values()},
            tenants={
                t.id: replace(t, in_flight=of_tenant[t.id]) if t.limited and t.id in of_tenant else t
                for t in self.tenants.values()
            },
            resources={
                r.id: replace(r, level=r.permits - held.get(r.id, 0.0)) if r.kind is ResourceKind.SEMAPHORE else r
                for r in self.resources.values()
            },
            demands={d.id: d for d in self.demands.values()},
            workers=tuple(
                WorkerView(worker, pool, max(0, slots - at_worker[worker, pool]))
                for (worker, pool), slots in self.workers.items()
            ),
            lanes=tuple(self.window(key, width) for key in self.lanes),
            clocks=dict(self.clocks),
            credits=dict(self.credits),
            set_asides=self.set_asides_in_force(),
        )

    def set_asides_in_force(self) -> dict[tuple[ResourceId, PriorityClass], SetAside]:
        """Those whose task is ready, in a pool and of a tenant that may start."""
        if not self.set_asides:
            return {}
        able = {
            task.id
            for key, tasks in self.lanes.items()
            for task in tasks
            if not self.pools[key.pool].paused and not self.tenants[key.tenant].suspended
        }
        return {place: aside for place, aside in self.set_asides.items() if aside.task in able}

    def window(self, key: LaneKey, width: int) -> Lane:
        """The front of one lane."""
        tasks = self.lanes[key]
        urgent = self.deadlines.get(key, [])
        return Lane(key, tuple(tasks[:width]), tuple(urgent[:width]), more=len(tasks) > width)
