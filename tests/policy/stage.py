"""A planner in virtual time: tasks arrive, run for as long as they take, and everything that started is on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from scheduler.policy.order import DEFAULT_ORDER, OrderPolicy
from scheduler.policy.plan import STARTS_MAX, make_plan
from scheduler.policy.types import LaneKey, Plan, PoolId, PriorityClass, ResourceId, Start, TaskId, TaskView, TenantId
from tests.policy.backlog import WIDTH, Backlog

CRITICAL, HIGH, NORMAL, LOW = PriorityClass


@dataclass(frozen=True, slots=True)
class Began:
    """One start: when, which task, how long it had been ready."""

    at: float
    name: str
    waited_s: float
    start: Start


@dataclass(slots=True)
class Stage:
    """Virtual time around a backlog. `epoch` shifts its clock, so that rounding is that of real timestamps."""

    backlog: Backlog = field(default_factory=Backlog)
    order: OrderPolicy = DEFAULT_ORDER
    now: float = 0.0
    starts_max: int = STARTS_MAX
    width: int = WIDTH
    began: list[Began] = field(default_factory=list)
    last_plan: Plan | None = None
    _events: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    _ids: count[int] = field(default_factory=lambda: count(1))
    _names: dict[TaskId, str] = field(default_factory=dict)
    _runs_s: dict[TaskId, float] = field(default_factory=dict)
    _ready_at: dict[TaskId, float] = field(default_factory=dict)

    def at(self, when: float, act: Callable[[], object]) -> None:
        """Do something at this time, before the plan of that moment."""
        heappush(self._events, (when, next(self._ids), act))

    def submit(
        self,
        name: str,
        *,
        pool: int = 1,
        tenant: int = 1,
        priority: PriorityClass = NORMAL,
        needs: Mapping[ResourceId, float] | None = None,
        runs_s: float = 1.0,
        expected_s: float = 1.0,
        latest_start: float | None = None,
        ready_at: float | None = None,
    ) -> TaskId:
        """Make a task ready now (or since `ready_at`); it will hold its slot for `runs_s`."""
        needs = needs or {}
        if TenantId(tenant) not in self.backlog.tenants:
            self.backlog.tenant(tenant)
        demand = self.backlog.demand(needs)
        task = TaskId(next(self._ids))
        since = self.now if ready_at is None else ready_at
        amounts = tuple(needs[r] for r in demand.resources)
        lane = LaneKey(PoolId(pool), priority, TenantId(tenant), demand.id)
        self.backlog.add(lane, TaskView(task, since, latest_start, expected_s, amounts))
        self._names[task] = name
        self._runs_s[task] = runs_s
        self._ready_at[task] = since
        return task

    def stream(self, name: str, *, every_s: float, until: float, submit: Callable[[str], object]) -> None:
        """Submit again and again, from now until then."""

        def again() -> None:
            submit(name)
            if self.now + every_s < until:
                self.at(self.now + every_s, again)

        self.at(self.now, again)

    def run(self, until: float = float("inf")) -> list[str]:
        """Let time pass until then, or until nothing more can happen; the names of all that began, in order."""
        while True:
            look_again_at = self._plan()
            times = [self._events[0][0]] if self._events else []
            if look_again_at is not None:
                assert look_again_at > self.now, "the planner asked to be called again at the same moment"
                times.append(look_again_at)
            if not times or min(times) > until:
                return self.names()
            self.now = min(times)
            while self._events and self._events[0][0] <= self.now:
                heappop(self._events)[2]()

    def names(self) -> list[str]:
        return [b.name for b in self.began]

    def times(self, name: str) -> list[float]:
        """When tasks of this name began."""
        return [b.at for b in self.began if b.name == name]

    def waits(self, name: str) -> list[float]:
        """How long tasks of this name waited."""
        return [b.waited_s for b in self.began if b.name == name]

    def _plan(self) -> float | None:
        while True:
            snapshot = self.backlog.snapshot(self.now, width=self.width)
            plan = make_plan(snapshot, starts_max=self.starts_max, order=self.order)
            self.last_plan = plan
            self.backlog.carry_out(plan)
            for start in plan.starts:
                self._begin(start)
            if not plan.truncated:
                return plan.look_again_at
            assert plan.starts, "a truncated plan that starts nothing would be repeated for ever"

    def _begin(self, start: Start) -> None:
        task = start.task
        self.began.append(Began(self.now, self._names[task], self.now - self._ready_at[task], start))
        took_s = self._runs_s[task]
        self.at(self.now + took_s, lambda: self.backlog.end(task, took_s=took_s))
