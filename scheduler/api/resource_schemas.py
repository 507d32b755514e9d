"""What operators say about shared limits and what goes before them for a while, and what they are told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, model_validator

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import YEAR_S, Moment, Number, Priority, Reason, Text, Version, Whole
from scheduler.policy.breaker import BreakerState
from scheduler.policy.declarations import LimitSettings
from scheduler.policy.types import ResourceKind
from scheduler.reads.resources import ResourceDetail


class ResourceIn(In):
    """A shared limit to declare: rate and burst for a token bucket, permits for a semaphore. 0 means paused."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "openai", "kind": "token_bucket", "rate": 50, "burst": 100}]}
    )

    name: Text
    kind: ResourceKind
    rate: Number | None = Field(None, description="Tokens per second")
    burst: Number | None = Field(None, description="Tokens at most")
    permits: Whole | None = Field(None, description="Holders at once")
    margin: Number | None = Field(None, description="The part that is kept back, 0 to below 1")
    ceilings: dict[Priority, Number] | None = Field(None, description="By class, the part of the burst to leave free")
    reason: Reason = ""

    def settings(self) -> LimitSettings:
        """What is declared."""
        return LimitSettings(**_limits(self))


class ResourceEditIn(In):
    """What to change of a limit; what is left out stays. The kind never changes."""

    version: Version
    rate: Number | None = None
    burst: Number | None = None
    permits: Whole | None = None
    margin: Number | None = None
    ceilings: dict[Priority, Number] | None = Field(None, description="All of them; null: none")
    reason: Reason = ""

    def changes(self) -> dict[str, Any]:
        """What was given, by the names of `LimitSettings`."""
        return _limits(self)


def _limits(body: ResourceIn | ResourceEditIn) -> dict[str, Any]:
    given = {name: getattr(body, name) for name in _LIMITS if name in body.model_fields_set}
    return {name: value for name, value in given.items() if value is not None or name == "ceilings"}


_LIMITS: Final = ("rate", "burst", "permits", "margin", "ceilings")


class OverrideIn(In):
    """What goes before the declared limit for a while; what is left out stays as declared."""

    rate: Number | None = None
    burst: Number | None = None
    permits: Whole | None = None
    for_s: Annotated[Number, Field(gt=0, le=YEAR_S)] | None = Field(None, description="Seconds until it ends by itself")
    until: Moment | None = None
    reason: Reason = ""

    @model_validator(mode="after")
    def _one_end(self) -> OverrideIn:
        if self.for_s is not None and self.until is not None:
            raise ValueError("Give for_s or until, not both.")
        return self


class LimitOut(Out):
    """The figures of a limit."""

    rate: float
    burst: float
    permits: int


class OverrideOut(Out):
    """What goes before the declared figures (null: nothing), until when (null: until it is lifted)."""

    rate: float | None
    burst: float | None
    permits: int | None
    until: datetime | None


class ResourcePauseOut(Out):
    """Since when nothing is taken of a limit, who said so and why. It ends when somebody resumes it."""

    at: datetime
    by: str = Field(description="`system` when the provider said that the account is out of money")
    reason: str


class BreakerOut(Out):
    """Whether the provider behind a limit answers. Calls are counted from the first that fails."""

    state: BreakerState = Field(description="open: nothing goes; half_open: one task tries it")
    since: datetime | None = Field(description="When it last opened or closed")
    until: datetime | None = Field(description="When one task may try it; null while it is closed")
    opens: int = Field(description="How often in a row it opened")
    calls: int
    failed: int
    probe: int | None = Field(description="The lease of the task that tries it now")


class ResourceOut(Out):
    """A shared limit now. `rate`, `burst` and `permits` are what is declared; what is in force is in `effective`."""

    name: str
    kind: str
    version: int
    rate: float
    burst: float
    permits: int
    margin: float
    ceilings: dict[str, float] | None
    override: OverrideOut | None = Field(description="While it lasts; one that has ended is null")
    effective: LimitOut
    factor: float = Field(description="What throttling left of the limit, 0.1 to 1")
    available: float = Field(description="Tokens left, or permits free; below zero it is a debt")
    capacity: float = Field(description="The most that can be available: the limit less its margin")
    refill_per_s: float
    held: float = Field(description="What running work holds of a semaphore")
    closed_until: datetime | None = Field(description="Until when the provider asked us to stay away")
    paused: bool = Field(description="It was paused, or the limit is 0")
    pause: ResourcePauseOut | None
    breaker: BreakerOut
    waiting: int = Field(description="Ready tasks that need it")


class ResourcesOut(Out):
    """All shared limits by name."""

    resources: list[ResourceOut]


def present_resource(found: ResourceDetail) -> ResourceOut:
    """The limit as it is sent."""
    view, declared, over = found.view, found.declared, found.override
    return ResourceOut(
        name=found.name,
        kind=view.kind.value,
        version=found.version,
        rate=declared.rate,
        burst=declared.burst,
        permits=declared.permits,
        margin=declared.margin,
        ceilings=None if declared.ceilings is None else dict(declared.ceilings),
        override=None
        if over is None
        else OverrideOut(rate=over.rate, burst=over.burst, permits=over.permits, until=at(over.until)),
        effective=LimitOut(rate=view.rate, burst=view.burst, permits=view.permits),
        factor=view.factor,
        available=round(found.available, 6),
        capacity=found.capacity,
        refill_per_s=found.refill_per_s,
        held=found.held,
        closed_until=at(found.closed_until),
        paused=found.paused,
        pause=_pause(found),
        breaker=_breaker(found),
        waiting=found.waiting,
    )


def _pause(found: ResourceDetail) -> ResourcePauseOut | None:
    pause = found.pause
    return None if pause is None else ResourcePauseOut(at=moment(pause.at), by=pause.by, reason=pause.reason)


def _breaker(found: ResourceDetail) -> BreakerOut:
    known = found.breaker
    return BreakerOut(
        state=found.breaker_state,
        since=at(known.changed_at),
        until=at(known.open_until),
        opens=known.opens,
        calls=known.calls,
        failed=known.failed,
        probe=known.probe,
    )
