"""A backlog in which tenants have runs: what waits and what runs, in memory, with what the runs' own gates ask."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.policy.run_gates import RunView
from scheduler.policy.types import (
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
    """Runs of tenants by number, each with a width; those that are paused."""

    widths: dict[RunId, int] = field(default_factory=dict)
    paused: set[RunId] = field(default_factory=set)
    bases: dict[DemandId, DemandId] = field(default_factory=dict)

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
        base = self.demand(needs or {})
        demand = self._of_run(RunId(run), base, writes=writes)
        lane = LaneKey(PoolId(pool), priority, TenantId(tenant), demand.id)
        self.add(lane, task._replace(amounts=tuple((needs or {})[r] for r in demand.resources)))
        return lane

    def _of_run(self, run: RunId, base: DemandView, *, writes: bool) -> DemandView:
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
                room=width - sum(leases.get(d.id, 0) for d in mine[run]),
                writing=any(d.writes and d.id in leases for d in mine[run]),
                next_write=self._next_write({d.id for d in mine[run] if d.writes}),
                demands=tuple(d.id for d in mine[run]),
            )
            for run, width in self.widths.items()
        }

    def _next_write(self, demands: set[DemandId]) -> TaskId | None:
        waiting = [(t.ready_at, t.id) for key, tasks in self.lanes.items() if key.demand in demands for t in tasks]
        return min(waiting)[1] if waiting else None

    def snapshot(self, now: float, *, width: int = WIDTH) -> Snapshot:
        """What a plan at `now` sees, with at most `width` tasks of each lane."""
        return replace(Backlog.snapshot(self, now, width=width), runs=self.runs())
