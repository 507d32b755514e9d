"""The simulated world's memory: tasks, attempts, leases. It moves a task only along legal moves, and raises otherwise.

Reports are fenced here as they are in the product: a lease that is not current changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.policy.limits import capacity, level_now
from scheduler.policy.retry import Failure
from scheduler.policy.settlement import EndedLease, corrections, decide_settlement, throttled_for_s
from scheduler.policy.states import REPLAYABLE, TERMINAL, WAITING, TaskState, may_move
from scheduler.policy.types import (
    LaneKey,
    LeaseId,
    Outcome,
    Reservation,
    ResourceId,
    ResourceKind,
    Start,
    TaskId,
    TaskView,
)
from tests.policy.run_backlog import RunBacklog
from tests.simulation.promises import Broken, promise
from tests.simulation.worlds import Job


@dataclass(slots=True)
class Record:
    """A task's row. `attempts` is what was spent since the last replay."""

    job: Job
    lane: LaneKey
    amounts: tuple[float, ...]
    state: TaskState
    ready_at: float | None
    due_at: float | None
    latest_start: float | None
    attempts: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    started: int = 0
    lease: LeaseId | None = None
    began_at: float = 0.0
    reservation: Reservation | None = None
    cancel_requested: bool = False

    @property
    def id(self) -> TaskId:
        return TaskId(self.job.number)


@dataclass(slots=True)
class Ledger:
    """All tasks and live leases. Times are those of the database's clock."""

    backlog: RunBacklog
    tasks: dict[TaskId, Record] = field(default_factory=dict)
    leases: dict[LeaseId, TaskId] = field(default_factory=dict)
    last_lease: int = 0
    stale: int = 0

    def submit(self, job: Job, *, now: float) -> Record:
        run = job.run
        backlog = self.backlog
        demand = backlog.demand(job.needs) if run is None else backlog.demand_of_run(run, job.needs, writes=job.writes)
        due_at = now + job.start_in_s if job.start_in_s else None
        latest_start = None if job.deadline_s is None else now + job.deadline_s - job.expected_s
        record = Record(
            job=job,
            lane=LaneKey(job.pool, job.priority, job.tenant, demand.id),
            amounts=tuple(job.needs[r] for r in demand.resources),
            state=TaskState.READY if due_at is None else TaskState.SCHEDULED,
            ready_at=now if due_at is None else None,
            due_at=due_at,
            latest_start=latest_start,
        )
        self.tasks[record.id] = record
        if record.state is TaskState.READY:
            self._queue(record)
        return record

    def promote(self, record: Record, *, now: float) -> bool:
        """Make a task ready whose time has come; a retried one keeps its first ready time and so its place."""
        if (
            record.state not in {TaskState.SCHEDULED, TaskState.RETRYING}
            or record.due_at is None
            or record.due_at > now
        ):
            return False
        record.ready_at = record.due_at if record.ready_at is None else record.ready_at
        record.due_at = None
        self._move(record, TaskState.READY)
        self._queue(record)
        return True

    def start(self, start: Start, *, now: float) -> LeaseId:
        record = self.tasks[start.task]
        promise(record.lease is None, f"task {record.id} was started while a lease on it was live")
        promise(record.attempts < record.job.rule.max_attempts, f"task {record.id} got more attempts than it may have")
        self._move(record, TaskState.RUNNING)
        record.attempts += 1
        record.started += 1
        record.began_at, record.reservation = now, start.reservation
        self.last_lease += 1
        record.lease = LeaseId(self.last_lease)
        self.leases[record.lease] = record.id
        return record.lease

    def settle(
        self,
        lease: LeaseId,
        outcome: Outcome,
        failure: Failure | None,
        *,
        actual: Mapping[ResourceId, float],
        draw: float,
        now: float,
    ) -> Record | None:
        """End a lease, whoever ends it. None: it was not current, and nothing changed."""
        task = self.leases.get(lease)
        if task is None:
            self.stale += 1
            return None
        record = self.tasks[task]
        ended = EndedLease(task, record.attempts, record.cancel_requested)
        verdict = decide_settlement(ended, outcome, failure, record.job.rule, draw=draw, now=now)
        del self.leases[lease]
        record.lease = None
        record.outcomes.append(outcome)
        record.attempts -= 0 if verdict.spent else 1
        self.backlog.end(task)
        self._move(record, verdict.state)
        record.due_at = verdict.due_at
        if verdict.state is TaskState.READY:
            self._queue(record)
        self._correct(record, actual, failure, now=now)
        return record

    def cancel(self, record: Record) -> None:
        """At once when it waits; a running one is told."""
        if record.state in WAITING:
            if record.state is TaskState.READY:
                promise(
                    self.backlog.withdraw(record.lane, record.id) is not None,
                    f"ready task {record.id} waits in no lane",
                )
            self._move(record, TaskState.CANCELLED)
        elif record.state is TaskState.RUNNING:
            record.cancel_requested = True

    def replay(self, record: Record, *, now: float) -> bool:
        if record.state not in REPLAYABLE:
            return False
        record.attempts, record.ready_at, record.due_at = 0, now, None
        self._move(record, TaskState.READY)
        self._queue(record)
        return True

    def unfinished(self) -> list[Record]:
        return [r for r in self.tasks.values() if r.state not in TERMINAL]

    def _queue(self, record: Record) -> None:
        assert record.ready_at is not None
        job = record.job
        view = TaskView(
            record.id,
            record.ready_at,
            record.latest_start,
            job.expected_s,
            record.amounts,
            cost=job.cost,
            cost_min=job.cost_min,
        )
        self.backlog.add(record.lane, view)

    def _move(self, record: Record, target: TaskState) -> None:
        if not may_move(record.state, target):
            raise Broken(f"task {record.id} went from {record.state} to {target}")
        record.state = target
        if record.job.writes:
            if target is TaskState.RETRYING and record.ready_at is not None:
                self.backlog.coming_back[record.id] = (record.lane.demand, record.ready_at)
            else:
                self.backlog.coming_back.pop(record.id, None)

    def _correct(
        self, record: Record, actual: Mapping[ResourceId, float], failure: Failure | None, *, now: float
    ) -> None:
        known = self.backlog.resources
        needs = tuple(sorted(record.job.needs))
        for resource, delta in corrections(needs, record.amounts, actual, known).items():
            view = known[resource]
            level = min(capacity(view), level_now(view, now=now) + delta)
            known[resource] = replace(view, level=level, level_at=now)
        closed_s = None if failure is None else throttled_for_s(failure)
        if closed_s is not None:
            for resource in needs:
                view = known[resource]
                if view.kind is ResourceKind.TOKEN_BUCKET:
                    until = max(now + closed_s, view.blocked_until or 0.0)
                    known[resource] = replace(view, blocked_until=until)
