"""The vocabulary of virtual time: what a run of the planner into the future starts from, meets and finds out.

A scene is the world at one moment, as the store, a trace replay or another run gives it. Frozen, so that one scene can
be run many times, and edited with `dataclasses.replace` (fewer slots, another limit) to see what that would change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.policy.retry import Failure, RetryRule
from scheduler.policy.states import TaskState
from scheduler.policy.types import (
    DemandId,
    DemandView,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceView,
    TaskId,
    TenantId,
    TenantView,
)


class Arrival(NamedTuple):
    """A task, or `number` like ones, that comes to a lane at a time.

    `amounts`, of each, go with the demand's resources.
    `runs_s` is how long an attempt will take; the planner does not see it, only `expected_s`. `label` is the caller's.
    """

    at: float
    lane: LaneKey
    amounts: tuple[float, ...] = ()
    runs_s: float = 1.0
    expected_s: float = 1.0
    latest_start: float | None = None
    label: int = 0
    number: int = 1


class Waiting(NamedTuple):
    """`number` like tasks that wait at this place of a lane, oldest first; `amounts` are of each of them.

    What has a `label`, which is the caller's, moves alone.
    """

    ready_at: float
    amounts: tuple[float, ...] = ()
    expected_s: float = 1.0
    latest_start: float | None = None
    number: int = 1
    label: int = 0


class InFlight(NamedTuple):
    """An attempt that runs. When it will end is a guess that a forecast makes for itself."""

    lane: LaneKey
    amounts: tuple[float, ...]
    started_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class Scene:
    """The world at `now`. `offers` is how many slots connected workers offer by pool; absent: as many as the pool has.

    What runs, and what it holds of semaphores, is counted from `in_flight`; figures of it in the views are not read.
    """

    now: float
    pools: Mapping[PoolId, PoolView]
    tenants: Mapping[TenantId, TenantView]
    resources: Mapping[ResourceId, ResourceView] = field(default_factory=dict)
    demands: Mapping[DemandId, DemandView] = field(default_factory=dict)
    offers: Mapping[PoolId, int] = field(default_factory=dict)
    waiting: Mapping[LaneKey, tuple[Waiting, ...]] = field(default_factory=dict)
    in_flight: tuple[InFlight, ...] = ()
    clocks: Mapping[PriorityClass, float] = field(default_factory=dict)
    credits: Mapping[tuple[PoolId, PriorityClass], float] = field(default_factory=dict)
    retry: Mapping[PoolId, RetryRule] = field(default_factory=dict)


class Served(NamedTuple):
    """What became of an attempt: how long it ran, why it failed (None: it did not), and what it really used."""

    runs_s: float
    failure: Failure | None = None
    actual: Mapping[ResourceId, float] | None = None


@dataclass(slots=True)
class Job:
    """A task in virtual time, or `count` like ones that move together. `started_at` is its first start.

    `each` are the amounts of one, `amounts` of all of it, `expected_s` its fair cost, `runs_s` how long one takes;
    `width` is how many of it run at once.
    """

    id: TaskId
    lane: LaneKey
    ready_at: float
    each: tuple[float, ...]
    expected_s: float
    latest_start: float | None
    runs_s: float
    label: int
    count: int = 1
    width: int = 1
    amounts: tuple[float, ...] = ()
    attempts: int = 0
    tried_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    state: TaskState = TaskState.READY

    @property
    def wait_s(self) -> float | None:
        """Seconds from ready to its first start; None while it has not started."""
        return None if self.started_at is None else self.started_at - self.ready_at


class Tried(NamedTuple):
    """An attempt that has ended."""

    job: Job
    started_at: float
    ended_at: float
    failure: Failure | None
