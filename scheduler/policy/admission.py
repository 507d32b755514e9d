"""Decides whether a submission is taken, and what row it becomes.

It sees the submission, the pool and the named resources; it never sees the payload's meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduler.errors import FieldError, Refused
from scheduler.policy.fixed_starts import FixedStart, OnMiss, fix
from scheduler.policy.graph import Dependency, JoinPolicy
from scheduler.policy.limits import fits_ever
from scheduler.policy.states import TaskState
from scheduler.policy.types import PoolId, PriorityClass, ResourceId, ResourceView, RunId

RESOURCES_PER_TASK_MAX: Final = 8
LABELS_MAX: Final = 8
LABEL_CHARS_MAX: Final = 64
ATTEMPTS_MAX: Final = 100
START_AHEAD_MAX_S: Final = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """A task's own retry settings; what is None follows the pool."""

    max_attempts: int | None = None
    initial_backoff_s: float | None = None
    multiplier: float | None = None
    max_backoff_s: float | None = None
    jitter: bool | None = None

    def as_json(self) -> dict[str, float | bool]:
        """The settings that are stored with the payload."""
        named = {
            "initial_backoff_s": self.initial_backoff_s,
            "multiplier": self.multiplier,
            "max_backoff_s": self.max_backoff_s,
            "jitter": self.jitter,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Submission:
    """A task as its submitter describes it. `payload` is JSON text. Times are Unix seconds, durations seconds."""

    payload: str
    pool: str = "default"
    kind: str = "default"
    priority: PriorityClass = PriorityClass.NORMAL
    key: str | None = None
    deadline_at: float | None = None
    deadline_in_s: float | None = None
    start_at: float | None = None
    start_in_s: float | None = None
    tolerance_s: float | None = None
    on_miss: OnMiss | None = None
    expires_in_s: float | None = None
    duration_hint_s: float | None = None
    timeout_s: float | None = None
    retry: RetrySettings | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    after: tuple[Dependency, ...] = ()
    group: str | None = None
    join: JoinPolicy | None = None
    max_cost_nano: int | None = None
    run: RunId | None = None
    writes: bool = False
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """What a pool lends to the tasks submitted to it. `awaits`: they may come after keys that nobody has used yet.

    `learned_s` is what nine in ten attempts of a kind took less than, where that is known.
    """

    id: PoolId
    max_attempts: int
    duration_default_s: float
    awaits: bool = False
    await_timeout_s: float | None = None
    learned_s: Mapping[str, float] = field(default_factory=dict)
    slots_max: int = 1
    reservable_fraction: float = 0.5
    executor: str = "python"
    config: Mapping[str, object] = field(default_factory=dict)
    worker_second_nano: int | None = None
    timeout_s: float | None = None

    @property
    def prices(self) -> bool:
        """Whether what runs here costs money."""
        return self.executor == "llm" or self.worker_second_nano is not None


@dataclass(frozen=True, slots=True)
class Priced:
    """What a task may cost, and below what it is not worth starting, in nano-dollars.

    `pricing` is JSON text, None where nothing but a worker's time costs.
    """

    cost: int
    cost_min: int
    pricing: str | None


@dataclass(frozen=True, slots=True)
class Admitted:
    """The row that a submission becomes. `needs` is in ascending resource id order; `amounts` goes with it.

    `start_by`: after this it must not start; `expires_at` is what its expiry alone says of that. `labels` are sorted.
    """

    pool: PoolId
    state: TaskState
    ready_at: float | None
    due_at: float | None
    deadline_at: float | None
    latest_start: float | None
    expected_s: float
    max_attempts: int
    needs: tuple[ResourceId, ...]
    amounts: tuple[float, ...]
    start_by: float | None = None
    expires_at: float | None = None
    fixed: FixedStart | None = None
    labels: tuple[str, ...] = ()


def admit(
    submission: Submission,
    *,
    pool: PoolTerms | None,
    resources: Mapping[str, ResourceView],
    now: float,
) -> Admitted:
    """The row for a submission. Raises Refused with a code, and the field to change."""
    if pool is None:
        raise _refused("unknown_pool", ("pool",), f"There is no pool named {submission.pool!r}.")
    if submission.writes:
        _check_write(submission)
    needs = _needs(submission, resources)
    expected_s = submission.duration_hint_s or pool.learned_s.get(submission.kind) or pool.duration_default_s
    deadline_at = _deadline(submission, now)
    due_at, fixed = _start(submission, now, expected_s, pool)
    latest_starts = [] if deadline_at is None else [deadline_at - expected_s]
    expires_at = _expiry(submission, due_at, now)
    start_bys = [] if expires_at is None else [expires_at]
    if fixed is not None:
        latest_starts.append(fixed.latest_start)
        if fixed.start_by is not None:
            start_bys.append(fixed.start_by)
    return Admitted(
        pool=pool.id,
        state=TaskState.READY if due_at is None else TaskState.SCHEDULED,
        ready_at=now if due_at is None else None,
        due_at=due_at,
        deadline_at=deadline_at,
        latest_start=min(latest_starts, default=None),
        expected_s=expected_s,
        max_attempts=_max_attempts(submission, pool),
        needs=tuple(resource for resource, _ in needs),
        amounts=tuple(amount for _, amount in needs),
        start_by=min(start_bys, default=None),
        expires_at=expires_at,
        fixed=fixed,
        labels=worker_labels(submission.labels),
    )


def worker_labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Labels as they are compared: name=value, sorted. Raises Refused."""
    if len(labels) > LABELS_MAX:
        raise _refused("too_many_labels", ("labels",), f"At most {LABELS_MAX} labels can be named.")
    for name, value in labels.items():
        if (
            not 0 < len(name) <= LABEL_CHARS_MAX
            or len(value) > LABEL_CHARS_MAX
            or "=" in name
            or "\x00" in name + value
        ):
            detail = f"A label has a name and a value of at most {LABEL_CHARS_MAX} characters, and no '=' in the name."
            raise _refused("bad_label", ("labels", name), detail)
    return tuple(sorted(f"{name}={value}" for name, value in labels.items()))


def _check_write(submission: Submission) -> None:
    if submission.run is None:
        raise _refused(
            "effect_without_run", ("effect",), "Only a step of a run has an effect to say; give its run too."
        )
    if submission.tolerance_s is not None or submission.on_miss is not None:
        detail = (
            "Writing steps of a run start in turn, so none can promise a fixed start; leave tolerance and on_miss out."
        )
        raise _refused("write_in_turn", ("effect",), detail)


def _needs(submission: Submission, resources: Mapping[str, ResourceView]) -> list[tuple[ResourceId, float]]:
    if not submission.resources:
        return []
    if len(submission.resources) > RESOURCES_PER_TASK_MAX:
        detail = (
            f"A task may name at most {RESOURCES_PER_TASK_MAX} resources; this one names {len(submission.resources)}."
        )
        raise _refused("too_many_resources", ("resources",), detail)
    needs = []
    for name, amount in submission.resources.items():
        view = resources.get(name)
        if view is None:
            raise _refused("unknown_resource", ("resources", name), f"There is no resource named {name!r}.")
        if not amount > 0.0:
            raise _refused("resource_amount", ("resources", name), f"An amount of {name!r} must be above 0.")
        if not fits_ever(view, amount):
            detail = f"{name!r} can never give {amount:g}; its capacity is {_declared(view):g}."
            raise _refused("resource_exceeds_capacity", ("resources", name), detail)
        needs.append((view.id, amount))
    needs.sort()
    return needs


def _declared(view: ResourceView) -> float:
    return view.burst or float(view.permits)


def _deadline(submission: Submission, now: float) -> float | None:
    if submission.deadline_at is not None:
        return submission.deadline_at
    return None if submission.deadline_in_s is None else now + submission.deadline_in_s


def _start(
    submission: Submission, now: float, expected_s: float, pool: PoolTerms
) -> tuple[float | None, FixedStart | None]:
    """When it is due, None for at once; and the promise, if it is a fixed start."""
    start_at = submission.start_at
    if start_at is None and submission.start_in_s is not None:
        start_at = now + submission.start_in_s
    is_fixed = submission.tolerance_s is not None or submission.on_miss is not None
    if start_at is None:
        if is_fixed:
            loc = "tolerance" if submission.tolerance_s is not None else "on_miss"
            raise _refused("no_start", (loc,), "Only a task with a start time has this; give start_in or start_at.")
        return None, None
    if start_at - now > START_AHEAD_MAX_S:
        raise _refused("start_too_far", ("start_at",), "A start may be at most 366 days ahead.")
    fixed = None
    if is_fixed:
        fixed = fix(
            start_at,
            expected_s=expected_s,
            pool_duration_s=pool.duration_default_s,
            tolerance_s=submission.tolerance_s,
            on_miss=submission.on_miss,
        )
    return (start_at if start_at > now else None), fixed


def _expiry(submission: Submission, due_at: float | None, now: float) -> float | None:
    if submission.expires_in_s is None:
        return None
    expires_at = now + submission.expires_in_s
    if due_at is not None and expires_at <= due_at:
        raise _refused("expires_before_start", ("expires_in",), "It would expire before its start time.")
    return expires_at


def _max_attempts(submission: Submission, pool: PoolTerms) -> int:
    own = submission.retry.max_attempts if submission.retry is not None else None
    return min(ATTEMPTS_MAX, pool.max_attempts if own is None else own)


def _refused(code: str, loc: tuple[str | int, ...], detail: str) -> Refused:
    return Refused(detail, code=code, errors=(FieldError(loc, detail),))
