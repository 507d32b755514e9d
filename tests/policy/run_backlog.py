"""A backlog in which tenants have runs: what waits and what runs, in memory, with what the runs' own gates ask."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.policy.run_gates import Kills, RunView
from scheduler.policy.types import (
    BudgetView,
    DemandId,
    DemandView,
    LaneKey,
    PoolId,
    PriorityClass,
    ResourceId,
    RunId,
    Snapshot,
    TaskId,
    TaskView,
    TenantId,
)
from tests.policy.backlog import WIDTH, Backlog


@dataclass(slots=True)
class RunBacklog(Backlog):
    """Runs of tenants by number, each with a width; those that are paused or killed, their money, other kills.

    `coming_back` are writing steps that were tried and wait for another time: they keep their turn.
    """

    widths: dict[RunId, int] = field(default_factory=dict)
    paused: set[RunId] = field(default_factory=set)
    killed: set[RunId] = field(default_factory=set)
    purses: dict[RunId, BudgetView] = field(default_factory=dict)
    kills: Kills | None = None
    bases: dict[DemandId, DemandId] = field(default_factory=dict)
    coming_back: dict[TaskId, tuple[DemandId, float]] = field(default_factory=dict)

    def step(
        self,
        task: TaskView,
        *,
        run: int,
        tenant: int,
        writes: bool = False,
        pool: int = 1,
        priority: PriorityClass = PriorityClass.NORMAL,
        needs: Mapping[ResourceId, float] | None = None,
    ) -> LaneKey:
        """Let a step of a run wait; its lane."""
        if TenantId(tenant) not in self.tenants:
            self.tenant(tenant)
        demand = self.demand_of_run(RunId(run), needs or {}, writes=writes)
        lane = LaneKey(PoolId(pool), priority, TenantId(tenant), demand.id)
        self.add(lane, task._replace(amounts=tuple((needs or {})[r] for r in demand.resources)))
        return lane

    def demand_of_run(self, run: RunId, needs: Mapping[ResourceId, float], *, writes: bool) -> DemandView:
        """What a step of the run needs, its leave among it; found or made."""
        base = self.demand(needs)
        self.widths.setdefault(run, 1)
        place = (ResourceId(-run), ResourceId(-int(writes)), *base.resources)
        if place not in self.demands:
            number = DemandId(-1 - len(self.demands))
            self.demands[place] = replace(base, id=number, run=run, writes=writes)
            self.bases[number] = base.id
        return self.demands[place]

    def leases(self) -> dict[DemandId, int]:
        """Running steps of runs, by demand."""
        return Counter(s.lane.demand for s in self.running.values() if s.lane.demand in self.bases)

    def runs(self) -> dict[RunId, RunView]:
        """Every run as its lanes meet it."""
        leases = self.leases()
        mine: dict[RunId, list[DemandView]] = defaultdict(list)
        for demand in self.demands.values():
            if demand.run is not None:
                mine[demand.run].append(demand)
        return {
            run: RunView(
                run,
                active=run not in self.paused,
                killed=run in self.killed,
                room=width - sum(leases.get(d.id, 0) for d in mine[run]),
                writing=any(d.writes and d.id in leases for d in mine[run]),
                next_write=self.next_write({d.id for d in mine[run] if d.writes}),
                budget=self.purses.get(run),
                demands=tuple(d.id for d in mine[run]),
            )
            for run, width in self.widths.items()
        }

    def next_write(self, demands: set[DemandId]) -> TaskId | None:
        """Of writing steps that wait with these demands, the one whose turn it is."""
        if not demands:
            return None
        first = [(tasks[0].ready_at, tasks[0].id) for key, tasks in self.lanes.items() if key.demand in demands]
        first += [(ready_at, task) for task, (demand, ready_at) in self.coming_back.items() if demand in demands]
        return min(first)[1] if first else None

    def snapshot(self, now: float, *, width: int = WIDTH) -> Snapshot:
        """What a plan at `now` sees, with at most `width` tasks of each lane."""
        seen = Backlog.snapshot(self, now, width=width)
        return replace(seen, runs=self.runs(), kills=self.kills) if self.widths or self.kills else seen
