"""The vocabulary of the core: ids, closed sets, and frozen views of what the planner looks at.

Times are `Timestamp`: seconds since the Unix epoch by the database clock, as float (0.25 µs of resolution, and
arithmetic without objects in the planner's inner loop). Durations are seconds and end in `_s`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, NewType

if TYPE_CHECKING:
    from scheduler.policy.run_gates import Kills, RunView

WORKER_FRESH_S: Final = 3.0
"""A worker not seen for this long gets no new work; workers show themselves every second."""

Timestamp = NewType("Timestamp", float)
TaskId = NewType("TaskId", int)
LeaseId = NewType("LeaseId", int)
PoolId = NewType("PoolId", int)
TenantId = NewType("TenantId", int)
ResourceId = NewType("ResourceId", int)
DemandId = NewType("DemandId", int)
WorkerId = NewType("WorkerId", str)
BudgetId = NewType("BudgetId", int)
RunId = NewType("RunId", int)


class PriorityClass(IntEnum):
    """The four priority classes; a smaller number is more urgent."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3

    @property
    def label(self) -> str:
        """The name users see: `critical`, `high`, `normal`, `low`."""
        return self.name.lower()


class ResourceKind(StrEnum):
    """A token bucket refills with time; a semaphore's permits come back when leases end."""

    TOKEN_BUCKET = "token_bucket"  # noqa: S105 - tokens of a rate limit, not of a login
    SEMAPHORE = "semaphore"


class WaitReason(StrEnum):
    """Why a task is not running. The planner's gates, in order, then the states that are not ready."""

    KILLED = "killed"
    POOL_PAUSED = "pool_paused"
    TENANT_SUSPENDED = "tenant_suspended"
    RUN_NOT_ACTIVE = "run_not_active"
    TENANT_START_RATE = "tenant_start_rate"
    TENANT_IN_FLIGHT = "tenant_in_flight"
    RUN_WIDTH = "run_width"
    RUN_WRITE_LOCK = "run_write_lock"
    RUN_BUDGET = "run_budget"
    TENANT_BUDGET = "tenant_budget"
    BREAKER_OPEN = "breaker_open"
    RESOURCE = "resource"
    NO_FREE_SLOT = "no_free_slot"
    SLOT_HELD = "slot_held"
    NO_WORKER = "no_worker"
    NO_MATCHING_WORKER = "no_matching_worker"
    BEHIND = "behind"
    BLOCKED_ON = "blocked_on"
    SCHEDULED_UNTIL = "scheduled_until"
    RETRY_AT = "retry_at"


class FailureClass(StrEnum):
    """Why an attempt failed; decides whether another may follow."""

    THROTTLED = "throttled"
    OVERLOADED = "overloaded"
    CAPACITY = "capacity"
    TIMEOUT = "timeout"
    LOST = "lost"
    ERROR = "error"
    PERMANENT = "permanent"
    PROVIDER_BILLING = "provider_billing"


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    RELEASED = "released"


class LaneKey(NamedTuple):
    """Tasks of one pool, class and tenant that need the same named resources wait in one lane."""

    pool: PoolId
    priority: PriorityClass
    tenant: TenantId
    demand: DemandId


class TaskView(NamedTuple):
    """A ready task as the planner sees it.

    `amounts` goes with the demand's `resources`, one for one. `expected_s` is the expected duration;
    `latest_start` is deadline minus that, or None without a deadline. `fixed`: its start was promised for this moment,
    and a slot kept for it; it goes before everything else. `cost` is what it may cost at most and `cost_min` below what
    it is not worth starting, in nano-dollars; 0 where nothing is priced.
    """

    id: TaskId
    ready_at: float
    latest_start: float | None
    expected_s: float
    amounts: tuple[float, ...]
    fixed: bool = False
    cost: int = 0
    cost_min: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """The front of one lane: `fifo` by (ready_at, id), `urgent` by latest start; a task may stand in both.

    `more` says that tasks wait behind the `fifo` window. Both windows have the same width: when `urgent` is shorter
    than `fifo`, no deadline waits behind it. An `unread` lane stands for lanes that were not looked at: its one task
    has the age of the oldest among them, its tenant the lowest counter.
    """

    key: LaneKey
    fifo: tuple[TaskView, ...]
    urgent: tuple[TaskView, ...] = ()
    more: bool = False
    unread: bool = False


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool: `slots` tasks may run at once over all workers, `running` do, `reserved` are kept for starts ahead."""

    id: PoolId
    slots: int
    running: int
    paused: bool = False
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A connected worker's free slots in one pool.

    It takes work of its `tenant` only (None: of anybody), and any that asks for no more than its `labels` (name=value).
    """

    id: WorkerId
    pool: PoolId
    free_slots: int
    tenant: TenantId | None = None
    labels: frozenset[str] = frozenset()


class FairCounter(NamedTuple):
    """A tenant's virtual counter in one class: cost of its starts ÷ weight, and when it last started a task."""

    value: float
    last_start_at: float


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A budget in force, in nano-dollars. `limit` None: none; `ends_at` None: it has no period."""

    id: BudgetId
    limit: int | None
    spent: int = 0
    reserved: int = 0
    ends_at: float | None = None

    @property
    def headroom(self) -> int | None:
        """What is neither spent nor reserved; None without a limit. Below 0 when the limit was lowered."""
        return None if self.limit is None else self.limit - self.spent - self.reserved


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant's fair-share weight, its virtual counters by class, and its own limits.

    A start takes one from its start-rate bucket (`start_rate` per second up to `start_burst`; None: no such limit), of
    which `start_level` was left at `start_level_at`. `in_flight` of at most `max_in_flight` attempts run. `budget` is
    that of its present period; None where nothing that waits is priced.
    """

    id: TenantId
    weight: float = 1.0
    suspended: bool = False
    counters: Mapping[PriorityClass, FairCounter] = field(default_factory=dict)
    start_rate: float | None = None
    start_burst: float = 1.0
    start_level: float = 1.0
    start_level_at: float = 0.0
    max_in_flight: int | None = None
    in_flight: int = 0
    budget: BudgetView | None = None

    @property
    def limited(self) -> bool:
        """Whether the tenant has a limit of its own."""
        return self.start_rate is not None or self.max_in_flight is not None


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A shared limit and its state at `level_at`.

    A token bucket has `rate` (tokens per second) and `burst`; a semaphore has `permits`. `level` is tokens left, or
    permits not held. `factor` scales rate and permits after throttling. Nothing is taken before `blocked_until`.
    `ceilings`, by class, are the parts of a bucket's burst that the class must leave. At `changes_at` an override ends.
    `open_until` is given while its breaker is not closed: from then on one task goes, unless one is `probing`. Nothing
    is taken while it is `paused`.
    """

    id: ResourceId
    kind: ResourceKind
    level: float
    level_at: float
    rate: float = 0.0
    burst: float = 0.0
    permits: int = 0
    margin: float = 0.0
    factor: float = 1.0
    blocked_until: float | None = None
    ceilings: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    changes_at: float | None = None
    open_until: float | None = None
    probing: bool = False
    paused: bool = False


class SetAside(NamedTuple):
    """Part of a bucket's refill that is kept for one task since then, until it has this amount."""

    task: TaskId
    amount: float
    since: float


@dataclass(frozen=True, slots=True)
class DemandView:
    """What a lane's tasks need: named resources in ascending id order, and labels (name=value) that a worker has.

    `priced`: they cost money too. Steps of a run need its leave: their demands have ids below zero, so that they are
    told apart without being looked up. `writes`: they have effects, so the run has them one at a time.
    """

    id: DemandId
    resources: tuple[ResourceId, ...]
    priced: bool = False
    labels: frozenset[str] = frozenset()
    run: RunId | None = None
    writes: bool = False


def is_of_run(demand: DemandId) -> bool:
    """Whether the tasks of a demand are steps of a run."""
    return demand < 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one plan looks at. Lanes of paused or full pools may be left out: they cannot start.

    `clocks` holds the virtual time of each class; `credits` the starts that a class is owed in a pool; `set_asides`
    what is kept for a class in a bucket, for tasks that are ready in pools and of tenants that may start.
    """

    now: float
    pools: Mapping[PoolId, PoolView]
    tenants: Mapping[TenantId, TenantView]
    resources: Mapping[ResourceId, ResourceView]
    demands: Mapping[DemandId, DemandView]
    workers: tuple[WorkerView, ...]
    lanes: tuple[Lane, ...]
    clocks: Mapping[PriorityClass, float] = field(default_factory=dict)
    credits: Mapping[tuple[PoolId, PriorityClass], float] = field(default_factory=dict)
    set_asides: Mapping[tuple[ResourceId, PriorityClass], SetAside] = field(default_factory=dict)
    runs: Mapping[RunId, RunView] = field(default_factory=dict)
    kills: Kills | None = None


class Reservation(NamedTuple):
    """What a start reserves, on which budgets. `capped`: it must not use more, because one of them has a limit."""

    amount: int
    budgets: tuple[BudgetId, ...]
    capped: bool


class Start(NamedTuple):
    """One task to start now, on this worker, taking these amounts of the lane's resources; money if it is priced."""

    task: TaskId
    lane: LaneKey
    worker: WorkerId
    amounts: tuple[float, ...]
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a lane did not start (more) tasks, and when looking again is worth it (None: when something changes)."""

    lane: LaneKey
    reason: WaitReason
    look_again_at: float | None = None
    resource: ResourceId | None = None
    needed: float = 0.0
    available: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start, why the rest waits, and what the plan leaves behind.

    `look_again_at` is the earliest time at which the clock alone makes another start possible. `truncated` says that
    a lane's window ran out or the plan's limit was reached with slots left: plan again at once. `stopped_at` is that
    lane; None for the limit. `levels` (of buckets
    that were drawn on), `counters`, `clocks`, `credits` and `start_levels` (of tenants' start-rate buckets) are new
    values, to be stored as they are; of `set_asides` those that are new, or None where one has served its purpose.
    `broke` are runs whose money does not pay for their next step.
    `probes` are the started tasks by which half-open breakers see whether their providers are back.
    """

    now: float
    starts: tuple[Start, ...]
    holds: tuple[Hold, ...]
    look_again_at: float | None
    truncated: bool
    levels: Mapping[ResourceId, float]
    counters: Mapping[tuple[TenantId, PriorityClass], float]
    clocks: Mapping[PriorityClass, float]
    credits: Mapping[tuple[PoolId, PriorityClass], float]
    start_levels: Mapping[TenantId, float] = field(default_factory=dict)
    set_asides: Mapping[tuple[ResourceId, PriorityClass], SetAside | None] = field(default_factory=dict)
    broke: frozenset[RunId] = frozenset()
    probes: Mapping[ResourceId, TaskId] = field(default_factory=dict)
    stopped_at: LaneKey | None = None


class LeasedTask(NamedTuple):
    """An attempt to run. `payload` is JSON text, or None when another worker is to pick it up.

    `upstream` is JSON text too: what became of the tasks that it came after, if there are any (`has_parents`).
    `degraded`: the pool is overloaded, and the attempt is to answer only. `tags` are JSON text, None without any. It
    must write no more than `max_output_tokens`, where a budget has a limit. `of_run`: it is a step of `run`, and goes
    on from its `checkpoint` (JSON text).
    """

    lease: LeaseId
    task: TaskId
    attempt: int
    pool: PoolId
    tenant: TenantId
    kind: str
    key: str | None
    timeout_s: float | None
    deadline_at: float | None
    worker: WorkerId
    payload: str | None
    has_parents: bool = False
    degraded: bool = False
    tags: str | None = None
    of_run: bool = False
    upstream: str | None = None
    max_output_tokens: int | None = None
    run: RunId | None = None
    checkpoint: str | None = None
