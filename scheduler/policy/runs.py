"""Decides what an agent's run may use as a whole: which steps it takes in, when a cap is near, when one ends it.

What its steps may do next to each other (width, writes in turn) is decided in `run_gates`, what a claim for an effect
is answered in `receipts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scheduler.errors import Conflict, CronoqError, FieldError, Refused
from scheduler.policy.types import RunId

STEPS_DEFAULT: Final = 20
WIDTH_DEFAULT: Final = 8
STEPS_MAX: Final = 10_000
WIDTH_MAX: Final = 1_000
TOKENS_MAX: Final = 10**15
WALL_MAX_S: Final = 366 * 86_400.0
COST_MAX_NANO: Final = 10**15
ALERT_AT: Final = 0.8
"""The part of a cap at which its owner is told, once."""


class RunState(StrEnum):
    """Where a run stands."""

    ACTIVE = "active"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"


OPEN: Final = frozenset({RunState.ACTIVE, RunState.PAUSED})
MOVES: Final[Mapping[RunState, frozenset[RunState]]] = {
    RunState.ACTIVE: frozenset({RunState.PAUSED, RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED}),
    RunState.PAUSED: frozenset({RunState.ACTIVE, RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED}),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.KILLED: frozenset({RunState.ACTIVE}),
}
"""Only a resume takes a run out of `killed`."""


class KillScope(StrEnum):
    """What can be killed beside a single run."""

    EVERYTHING = "everything"
    TENANT = "tenant"
    POOL = "pool"


class Cap(StrEnum):
    """What a run has a cap of."""

    STEPS = "steps"
    TOKENS = "tokens"
    COST = "cost"
    WALL_CLOCK = "wall_clock"


@dataclass(frozen=True, slots=True)
class Caps:
    """What a run may use; None: as much as it likes. `wall_s` counts from its creation."""

    max_steps: int = STEPS_DEFAULT
    max_width: int = WIDTH_DEFAULT
    max_tokens: int | None = None
    max_cost_nano: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunQuota:
    """What its tenant lets each run have: the default and the most. None: ours by default, and our bound."""

    max_steps: int | None = None
    max_width: int | None = None
    max_cost_nano: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The caps that a run's creator asked for; None: whatever is usual."""

    max_steps: int | None = None
    max_width: int | None = None
    max_tokens: int | None = None
    max_cost_nano: int | None = None
    wall_s: float | None = None


def caps_for(asked: Asked, quota: RunQuota) -> Caps:
    """The caps of a new run."""
    return Caps(
        max_steps=_first(asked.max_steps, quota.max_steps, STEPS_DEFAULT),
        max_width=_first(asked.max_width, quota.max_width, WIDTH_DEFAULT),
        max_tokens=asked.max_tokens,
        max_cost_nano=quota.max_cost_nano if asked.max_cost_nano is None else asked.max_cost_nano,
        wall_s=asked.wall_s,
    )


def _first(asked: int | None, of_tenant: int | None, usual: int) -> int:
    if asked is not None:
        return asked
    return usual if of_tenant is None else of_tenant


def faults_in_caps(caps: Caps, quota: RunQuota) -> tuple[FieldError, ...]:
    """Everything that has to change before a run can have these caps."""
    steps_most = STEPS_MAX if quota.max_steps is None else quota.max_steps
    width_most = WIDTH_MAX if quota.max_width is None else quota.max_width
    cost_most = COST_MAX_NANO if quota.max_cost_nano is None else quota.max_cost_nano
    found = (
        _beyond("max_steps", caps.max_steps, steps_most),
        _beyond("max_width", caps.max_width, width_most),
        _beyond("max_tokens", caps.max_tokens, TOKENS_MAX),
        _beyond("max_cost_usd", caps.max_cost_nano, cost_most, unit=10**9),
        _beyond("wall_clock_s", caps.wall_s, WALL_MAX_S),
    )
    return tuple(fault for fault in found if fault is not None)


def _beyond(name: str, value: float | None, most: float, *, unit: int = 1) -> FieldError | None:
    if value is None or 0 < value <= most:
        return None
    return FieldError((name,), f"{name} of a run here is above 0 and at most {most / unit:g}.")


@dataclass(frozen=True, slots=True)
class Use:
    """What a run has used so far, and the caps it is measured by. Times are Unix seconds.

    `spent_out`: what is left of its money does not pay for its next step, which is as good as nothing.
    """

    caps: Caps
    created_at: float
    steps: int
    tokens: int
    cost_nano: int = 0
    spent_out: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """A cap that a run has come near, or reached: `used` of `most`."""

    cap: Cap
    used: float
    most: float

    @property
    def reached(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.most


def near_caps(use: Use, *, now: float) -> tuple[Near, ...]:
    """The caps of which so much is used that the run's owner is to be told."""
    caps = use.caps
    cost = float(caps.max_cost_nano or 0) if use.spent_out else float(use.cost_nano)
    measured = (
        (Cap.STEPS, float(use.steps), caps.max_steps),
        (Cap.TOKENS, float(use.tokens), caps.max_tokens),
        (Cap.COST, cost, caps.max_cost_nano),
        (Cap.WALL_CLOCK, now - use.created_at, caps.wall_s),
    )
    return tuple(
        Near(cap, used, float(most)) for cap, used, most in measured if most is not None and used >= ALERT_AT * most
    )


def fatal(near: tuple[Near, ...]) -> Near | None:
    """The cap that ends the run, if one is reached. Steps are refused beyond theirs instead: the last may yet run."""
    return next((each for each in near if each.reached and each.cap is not Cap.STEPS), None)


def heed_at(caps: Caps, created_at: float, *, now: float) -> float | None:
    """When the wall clock matters next: at the alert's part of it, then at its end. None when it does not any more."""
    if caps.wall_s is None:
        return None
    alert_at, end_at = created_at + ALERT_AT * caps.wall_s, created_at + caps.wall_s
    return alert_at if now < alert_at else end_at if now < end_at else None


def fault_in_step(run: RunId, *, state: RunState | None, steps: int, max_steps: int) -> CronoqError | None:
    """Why a run does not take in another step, or None. `state` None: the tenant has no such run."""
    if state is None:
        detail = f"There is no run {run}; create one with POST /runs first."
        return Refused(detail, code="unknown_run", errors=(FieldError(("run",), detail),))
    if state not in OPEN:
        detail = f"The run {run} has ended: it is {state}. {_AFTER_END[state]}"
        return Conflict(detail, code="run_ended", errors=(FieldError(("run",), detail),))
    if steps >= max_steps:
        detail = f"The run {run} took in {steps} steps, and its max_steps is {max_steps}; raise it or finish the run."
        return Refused(detail, code="run_steps", errors=(FieldError(("run",), detail),))
    return None


_AFTER_END: Final[Mapping[RunState, str]] = {
    RunState.SUCCEEDED: "Create another one.",
    RunState.FAILED: "Create another one.",
    RunState.KILLED: "Only an explicit resume lets it go on.",
}
