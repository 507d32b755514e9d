"""Runs the planner forward in virtual time: the same decisions as in production, with invented work and durations.

    scene = Scene(now=0.0, pools={…}, tenants={…}, resources={…}, demands={…})
    run = Forward(scene, arrivals, draw=random.Random(1).random)      # arrivals in order of time
    run.advance(3600.0)                                               # or until=inf: to the end of all work
    for job in run.started: …job.label, job.wait_s…
    scene_then = run.scene()                                          # what would be known now; to forecast from

`serve(job, now)` says how long an attempt takes and how it ends, by default as long as its arrival says and well.
With `coarse_after`, tasks that start later than that many move in groups (`grain`): for forecasts of long backlogs.
Forecasts, previews and trace replays are runs of this one class; the live engine differs by asking a database. Nothing
here is random or reads a clock: `draw` gives numbers in [0, 1) for backoff. Events of one time happen in this order:
ends of attempts and retries, arrivals, then one plan. The planner is not asked when nothing can have changed for it;
a deadline that grows pressing between two events is seen at the second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from typing import Final

from scheduler.policy.grain import Grain
from scheduler.policy.limits import capacity, level_now, mended
from scheduler.policy.order import DEFAULT_ORDER, OrderPolicy
from scheduler.policy.plan import STARTS_MAX, make_plan
from scheduler.policy.queues import LaneFront
from scheduler.policy.retry import RetryRule
from scheduler.policy.scene import Arrival, InFlight, Job, Scene, Served, Tried, Waiting
from scheduler.policy.settlement import EndedLease, corrections, decide_settlement, throttled_for_s
from scheduler.policy.standing import Standing
from scheduler.policy.states import TaskState
from scheduler.policy.types import (
    LaneKey,
    Outcome,
    Plan,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    SetAside,
    Snapshot,
    TaskId,
    WaitReason,
    WorkerId,
    WorkerView,
)

WORKER: Final = WorkerId("virtual")
_RULE: Final = RetryRule()

Serve = Callable[[Job, float], Served]
"""What becomes of an attempt that starts now."""


def serve_as_told(job: Job, _now: float) -> Served:
    """Every attempt takes what its arrival says and succeeds."""
    return Served(job.runs_s)


class Forward:
    """One run.

    `started` lists jobs by first start, `ended` those that ended, `tried` the attempts that ended; `waiting`
    are the lanes, `last_id` is the newest job's.
    """

    def __init__(
        self,
        scene: Scene,
        arrivals: Iterable[Arrival] = (),
        *,
        draw: Callable[[], float],
        serve: Serve = serve_as_told,
        order: OrderPolicy = DEFAULT_ORDER,
        coarse_after: int | None = None,
    ) -> None:
        self.now = scene.now
        self.started: list[Job] = []
        self.ended: list[Job] = []
        self.tried: list[Tried] = []
        self.plans = 0
        self.waiting: dict[LaneKey, LaneFront] = {}
        self.running: dict[TaskId, tuple[Job, float]] = {}
        self._scene = scene
        self._draw, self._serve, self._order = draw, serve, order
        self._resources = {r: mended(view) for r, view in scene.resources.items()}
        self._standing = Standing(tuple(scene.tenants.values()))
        self._asides: dict[tuple[ResourceId, PriorityClass], SetAside] = {}
        self._clocks, self._credits = dict(scene.clocks), dict(scene.credits)
        self._busy: dict[PoolId, int] = defaultdict(int)
        self._held: dict[ResourceId, float] = defaultdict(float)
        self._grain = Grain(scene.pools, scene.demands, scene.resources, scene.tenants, coarse_after)
        self._arrivals = iter(arrivals)
        self._events: list[tuple[float, int, Callable[[Job], None], Job]] = []
        self._order_of_events = 0
        self.last_id = 0
        self._wake_at: float | None = None
        self._changed, self._coarser = True, False
        for lane, places in scene.waiting.items():
            ahead = 0
            for place in places:
                self._let_in(lane, place.ready_at, place, ahead=ahead)
                ahead += place.number
        for flight in scene.in_flight:
            self._resume(flight)
        self._next = next(self._arrivals, None)

    # Time

    def advance(self, until: float = inf, *, enough: Callable[[], bool] | None = None) -> None:
        """Let everything happen up to and including `until`, or until it is `enough` (asked after each plan)."""
        while (at := self._next_time()) <= until and at < inf:
            self.now = max(self.now, at)
            while self._events and self._events[0][0] <= self.now:
                _, _, act, job = heappop(self._events)
                act(job)
            while self._next is not None and self._next.at <= self.now:
                self.arrive(self._next)
                self._next = next(self._arrivals, None)
            if self._changed or (self._wake_at is not None and self._wake_at <= self.now):
                self._plan()
                if enough is not None and enough():
                    return
        if until < inf:
            self.now = max(self.now, until)

    def _next_time(self) -> float:
        at = self.now if self._changed else inf
        if self._events and self._events[0][0] < at:
            at = self._events[0][0]
        if self._next is not None and self._next.at < at:
            at = self._next.at
        return at if self._wake_at is None or self._wake_at > at else self._wake_at

    def _later(self, at: float, act: Callable[[Job], None], job: Job) -> None:
        self._order_of_events += 1
        heappush(self._events, (at, self._order_of_events, act, job))

    # What happens

    def _job(self, lane: LaneKey, ready_at: float, what: Arrival | Waiting, count: int) -> Job:
        self.last_id += 1
        runs_s = what.runs_s if isinstance(what, Arrival) else what.expected_s
        cost = what.expected_s * count
        return Job(
            TaskId(self.last_id), lane, ready_at, what.amounts, cost, what.latest_start, runs_s, what.label, count=count
        )

    def _let_in(self, lane: LaneKey, ready_at: float, what: Arrival | Waiting, *, ahead: int = 0) -> None:
        for count in self._grain.pieces(what.number, place=ahead):
            job = self._job(lane, ready_at, what, count)
            self._grain.fit(job)
            self._wait(job)

    def arrive(self, arrival: Arrival) -> None:
        """Let a task come now: for a caller that looks at each arrival before it gives it to the run."""
        self._let_in(arrival.lane, self.now, arrival)

    def _wait(self, job: Job) -> None:
        front = self.waiting.get(job.lane)
        if front is None:
            front = self.waiting[job.lane] = LaneFront(job.lane)
        if front.add(job) and self._room(job.lane.pool) > 0:
            self._changed = True

    def _return(self, job: Job) -> None:
        job.state = TaskState.READY
        self._wait(job)

    def _resume(self, flight: InFlight) -> None:
        self.last_id += 1
        job = Job(TaskId(self.last_id), flight.lane, self.now, flight.amounts, 1.0, None, 0.0, 0, attempts=1)
        job.amounts = flight.amounts
        job.tried_at = job.started_at = flight.started_at
        self._occupy(job)
        self.running[job.id] = (job, flight.ends_at)
        self._later(flight.ends_at, self._finish_unknown, job)

    def _finish_unknown(self, job: Job) -> None:
        self._settle(job, Served(0.0))

    def _settle(self, job: Job, served: Served) -> None:
        """The end of an attempt, by the rules of settlement."""
        del self.running[job.id]
        was_full = self._room(job.lane.pool) <= 0
        self._release(job)
        self._correct(job, served)
        failure = served.failure
        self.tried.append(Tried(job, job.tried_at, self.now, failure))
        verdict = decide_settlement(
            EndedLease(job.id, job.attempts, cancel_requested=False),
            Outcome.SUCCEEDED if failure is None else Outcome.FAILED,
            failure,
            self._scene.retry.get(job.lane.pool, _RULE),
            draw=0.0 if failure is None else self._draw(),
            now=self.now,
        )
        job.state = verdict.state
        if verdict.due_at is not None:
            self._later(verdict.due_at, self._return, job)
        else:
            job.ended_at = self.now
            self.ended.append(job)
        self._changed = self._changed or was_full

    def _correct(self, job: Job, served: Served) -> None:
        needs = self._scene.demands[job.lane.demand].resources if job.amounts else ()
        if served.actual is not None:
            for resource, delta in corrections(needs, job.amounts, served.actual, self._resources).items():
                view = self._resources[resource]
                level = min(capacity(view), level_now(view, now=self.now) + delta)
                self._resources[resource] = replace(view, level=level, level_at=self.now)
                self._changed = self._changed or delta > 0.0
        closed_s = None if served.failure is None else throttled_for_s(served.failure)
        if closed_s is not None:
            for resource in needs:
                view = self._resources[resource]
                until = max(view.blocked_until or 0.0, self.now + closed_s)
                if view.kind is ResourceKind.TOKEN_BUCKET:
                    self._resources[resource] = replace(view, blocked_until=until)

    # Slots and permits

    def _room(self, pool: PoolId) -> int:
        """How many of the things that move as one still fit."""
        slots = self._scene.pools[pool].slots
        return (min(slots, self._scene.offers.get(pool, slots)) - self._busy[pool]) // self._grain.slots_of_one(pool)

    def _occupy(self, job: Job) -> None:
        self._busy[job.lane.pool] += job.width
        self._standing.begin(job)
        self._hold(job, 1.0)

    def _release(self, job: Job) -> None:
        self._busy[job.lane.pool] -= job.width
        took_s = (self.now - job.tried_at) * job.width / job.count
        opens = self._standing.end(job, took_s=took_s)
        # A corrected counter may bring another tenant's turn; a run that groups sees that at the next event.
        turn = self._standing.takes_turns and self._grain.exact
        self._changed = self._changed or opens or turn
        self._hold(job, -1.0)

    def _hold(self, job: Job, sign: float) -> None:
        if not job.amounts:
            return
        for resource, amount in zip(self._scene.demands[job.lane.demand].resources, job.amounts, strict=True):
            view = self._resources[resource]
            if view.kind is ResourceKind.SEMAPHORE:
                self._held[resource] += sign * amount
                self._resources[resource] = replace(view, level=view.permits - self._held[resource])
                self._changed = self._changed or sign < 0.0

    # Planning

    def _plan(self) -> None:
        self._changed = False
        self._wake_at = None
        while True:
            fronts = {key: front for key, front in self.waiting.items() if front.jobs and self._room(key.pool) > 0}
            if not fronts:
                return
            plan = make_plan(self._snapshot(fronts), starts_max=STARTS_MAX, order=self._order)
            self.plans += 1
            self._carry_out(plan)
            self._wake_at = plan.look_again_at
            # What is narrower than the planner counts leaves it room that it does not know of; and a start that closes
            # its tenant's own limit gives up what another of its heads spoke for in the same plan.
            narrower = self._grain.size > 1 and any(hold.reason is WaitReason.NO_FREE_SLOT for hold in plan.holds)
            once_more = plan.starts and (narrower or self._standing.any_limited)
            if not (plan.truncated or once_more):
                return

    def _snapshot(self, fronts: dict[LaneKey, LaneFront]) -> Snapshot:
        pools = {key.pool for key in fronts}
        return Snapshot(
            now=self.now,
            pools={p: self._pool_view(p) for p in pools},
            tenants={key.tenant: self._standing.view(key.tenant, self._grain.size) for key in fronts},
            resources=self._resources,
            demands=self._scene.demands,
            workers=tuple(WorkerView(WORKER, p, self._room(p)) for p in pools),
            lanes=tuple(front.front() for front in fronts.values()),
            clocks=self._clocks,
            credits=self._credits,
            set_asides=dict(self._asides),
        )

    def _pool_view(self, pool: PoolId) -> PoolView:
        return PoolView(pool, self._room(pool), 0, self._scene.pools[pool].paused)

    def _carry_out(self, plan: Plan) -> None:
        for resource, level in plan.levels.items():
            self._resources[resource] = replace(self._resources[resource], level=level, level_at=plan.now)
        self._standing.store(plan, self._grain.size)
        for place, aside in plan.set_asides.items():
            if aside is None:
                self._asides.pop(place, None)
            else:
                self._asides[place] = aside
        self._clocks.update(plan.clocks)
        self._credits.update(plan.credits)
        for start in plan.starts:
            self._start(self.waiting[start.lane].take(start.task))
        if self._coarser:
            self._coarsen()

    def _start(self, job: Job) -> None:
        job.attempts += 1
        job.state = TaskState.RUNNING
        job.tried_at = self.now
        if job.started_at is None:
            job.started_at = self.now
            self.started.append(job)
        served = self._serve(job, self.now)
        ends_at = self.now + served.runs_s * job.count / job.width
        self._occupy(job)
        self.running[job.id] = (job, ends_at)
        self._later(ends_at, lambda ended: self._settle(ended, served), job)
        self._coarser = self._grain.count_start() or self._coarser

    def _coarsen(self) -> None:
        """From now on twice as many tasks move as one. A bucket must hold what one start draws."""
        self._changed, self._coarser = True, False
        self._asides.clear()
        for front in self.waiting.values():
            front.replace(self._grain.merged(front))
        for resource, largest in self._grain.largest.items():
            view = self._resources[resource]
            if view.kind is ResourceKind.TOKEN_BUCKET and largest > view.burst > 0.0:
                self._resources[resource] = replace(view, burst=largest)

    # Looking

    def scene(self) -> Scene:
        """The world as it is now, less what has yet to come: jobs in backoff are not in it."""
        resources: dict[ResourceId, ResourceView] = self._resources
        return replace(
            self._scene,
            now=self.now,
            tenants=self._standing.views(),
            resources=dict(resources),
            waiting={
                key: tuple(Waiting(j.ready_at, j.each, j.expected_s, j.latest_start) for j in front)
                for key, front in self.waiting.items()
                if front.jobs
            },
            in_flight=tuple(InFlight(j.lane, j.amounts, j.tried_at, ends_at) for j, ends_at in self.running.values()),
            clocks=dict(self._clocks),
            credits=dict(self._credits),
        )
