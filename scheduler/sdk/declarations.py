"""What users declare: pools, limits, retries, tasks. Plain values that know nothing of how they are kept.

Names, arguments and defaults are those of cronoq. Durations are seconds (or `timedelta`), moments are aware `datetime`s
or Unix seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar

from scheduler.sdk.context import TaskContext

if TYPE_CHECKING:
    from scheduler.sdk.handle import TaskHandle

Seconds = float | timedelta
Moment = float | datetime
Executor = Callable[[TaskContext, Any], Awaitable[Any]] | Callable[[TaskContext, Any], Any]
"""`async def run(ctx, payload)`, on the caller's loop, or a plain function, in a thread."""
Condition = Literal["success", "failure", "complete"]
Effect = Literal["read", "write"]
OnMiss = Literal["run_late", "skip", "fail"]
Overflow = Literal["wait", "reject", "shed_lowest", "shed_oldest"]
T = TypeVar("T")


class Priority(StrEnum):
    """The four classes. Plain strings do as well: `priority="high"`."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Codec(Protocol):
    """How payloads and results become JSON and back. The default hands on what is JSON already."""

    def encode(self, value: Any) -> Any:
        """A JSON value (None, bool, number, text, list, dict with text keys)."""

    def decode(self, value: Any) -> Any:
        """What `encode` was given."""


class JsonCodec:
    """Values that are JSON already, as they are."""

    def encode(self, value: T) -> T:
        """The value itself."""
        return value

    def decode(self, value: T) -> T:
        """The value itself."""
        return value


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a task is tried in all, and how long it rests between: a random part of a doubling time (`jitter`)."""

    max_attempts: int = 3
    initial_backoff: Seconds = 1.0
    multiplier: float = 2.0
    max_backoff: Seconds = 60.0
    jitter: bool = True

    @classmethod
    def none(cls) -> RetryPolicy:
        """One attempt only."""
        return cls(max_attempts=1)


@dataclass(frozen=True, slots=True)
class AutoscaleConfig:
    """How a pool's slots follow its work, between its `min` and `max`.

    `slo` is the wait that a class may have, in seconds: `{"high": 2.0}`. Steps are in slots.
    """

    interval: Seconds = 1.0
    target_utilization: float = 0.75
    drain_time: Seconds = 30.0
    slo: Mapping[str, float] | None = None
    reservation_horizon: Seconds = 60.0
    stabilization_window: Seconds = 60.0
    cooldown: Seconds = 30.0
    max_step_up_abs: int = 4
    max_step_down: int = 1
    cost_per_worker_second: float = 0.0


@dataclass(frozen=True, slots=True)
class Resource:
    """A limit that all pools share. Make one with `token_bucket` or `semaphore`.

    `margin` is the part of a bucket that is kept back, because requests bunch between our door and the provider's.
    """

    name: str
    kind: Literal["token_bucket", "semaphore"]
    rate: float = 0.0
    burst: float = 0.0
    permits: int = 0
    margin: float = 0.02

    @classmethod
    def token_bucket(cls, name: str, rate: float, burst: float, *, margin: float = 0.02) -> Resource:
        """At most `rate` per second, and up to `burst` at once after a rest."""
        return cls(name, "token_bucket", rate=float(rate), burst=float(burst), margin=margin)

    @classmethod
    def semaphore(cls, name: str, permits: int) -> Resource:
        """At most `permits` at the same time."""
        return cls(name, "semaphore", permits=permits, margin=0.0)


@dataclass(frozen=True, slots=True)
class Dep:
    """A task to come after, by key, id or handle, and how it has to end: `success`, `failure` or `complete`."""

    target: str | int | TaskHandle
    on: Condition = "success"


After = str | int | Dep | Iterable[Any]
"""One task or several: keys, ids, handles, or `Dep`s where the condition is not success."""


@dataclass(frozen=True)
class Pool:
    """Slots that run tasks through one executor.

    Without `autoscale` a pool has `initial` slots, or `max` if that is unsaid. With it, it begins with `initial` (or
    `min`) and follows its work. `executor` None: declared here, run by another process. `overflow` says what happens to
    a task for which there is no room: its submitter waits, is refused, or another task is ended for it.
    `unknown_dependency="await"`: tasks may come after keys that nobody has used yet, for `await_timeout` seconds.
    Sharing between tenants is always fair (`fair_share` is there for programs that ask for it); `tenant_weights` are
    the shares.
    """

    name: str
    executor: Executor | None
    _: KW_ONLY
    min: int = 1
    max: int = 10
    initial: int | None = None
    autoscale: AutoscaleConfig | None = None
    lease_ttl: Seconds | None = None
    max_pending: int | None = None
    overflow: Overflow = "wait"
    retry: RetryPolicy | None = None
    unknown_dependency: Literal["reject", "await"] = "reject"
    await_timeout: Seconds | None = None
    default_duration: Seconds = 1.0
    reservable_fraction: float = 0.5
    tenant_weights: Mapping[str, float] | None = None
    fair_share: bool = False


class TaskFields(TypedDict, total=False):
    """What a task may say besides its payload. Everything has a default."""

    priority: Priority | str
    pool: str
    kind: str
    key: str | None
    deadline_in: Seconds | None
    deadline_at: Moment | None
    start_in: Seconds | None
    start_at: Moment | None
    tolerance: Seconds | None
    on_miss: OnMiss | None
    expires_in: Seconds | None
    duration_hint: Seconds | None
    timeout: Seconds | None
    retry: RetryPolicy | None
    after: After | None
    deps: Iterable[Dep] | None
    resources: Mapping[str, float] | None
    tags: Mapping[str, str] | Iterable[str] | None
    labels: Mapping[str, str] | None
    tenant: str | None
    run: int | None
    effect: Effect
    max_cost_usd: float | str | None
    capability: str | None


@dataclass(frozen=True, slots=True)
class Task:
    """A task for `submit_batch`; `submit` takes the same arguments.

    - `priority`: `critical`, `high`, `normal` or `low`. `kind`: what sort of work, for statistics and handlers.
    - `key`: unique per tenant. The same key with the same content is the first task again.
    - `deadline_in`, `deadline_at`: when it should be done (soft: it goes earlier, nothing is dropped).
    - `start_in`, `start_at`: not before then. With `tolerance` or `on_miss` the start is promised: a slot is reserved.
    - `expires_in`: missed if it has not started by then.
    - `duration_hint`: how long it will take; `timeout`: how long an attempt may take.
    - `after`, `deps`: tasks to come after.
    - `resources`: amounts of shared limits, all taken before it starts.
    - `tags`: `{"name": "value"}`; the tag `traceparent` puts the task into a trace.
    - `labels`: what the worker must have, `{"gpu": "a100"}`.
    - `tenant`: whose work it is; an embedded scheduler makes one that is new.
    - `run`: the agent run that it is a step of; `effect="write"`: such steps of a run go one at a time.
    - `max_cost_usd`: what it may cost at most, where its pool prices its work.
    - `capability`: instead of a model: the route of this name chooses one, the cheapest that is up and fits.
    """

    payload: Any
    _: KW_ONLY
    priority: Priority | str = Priority.NORMAL
    pool: str = "default"
    kind: str = "default"
    key: str | None = None
    deadline_in: Seconds | None = None
    deadline_at: Moment | None = None
    start_in: Seconds | None = None
    start_at: Moment | None = None
    tolerance: Seconds | None = None
    on_miss: OnMiss | None = None
    expires_in: Seconds | None = None
    duration_hint: Seconds | None = None
    timeout: Seconds | None = None
    retry: RetryPolicy | None = None
    after: After | None = None
    deps: Iterable[Dep] | None = None
    resources: Mapping[str, float] | None = None
    tags: Mapping[str, str] | Iterable[str] | None = None
    labels: Mapping[str, str] | None = None
    tenant: str | None = None
    run: int | None = None
    effect: Effect = "read"
    max_cost_usd: float | str | None = None
    capability: str | None = None
