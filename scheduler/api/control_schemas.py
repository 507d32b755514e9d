"""What operators say about pools and tokens, and what they are told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Json, Moment, Number, Priority, Reason, Seconds, Text, Usd, Version, Whole
from scheduler.api.scale_schemas import AutoscaleIn, AutoscaleOut
from scheduler.policy.declarations import PoolSettings
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.money import format_usd, parse_usd
from scheduler.reads.pools import Pause, PoolDetail

Executor = Literal["python", "llm", "remote", "http"]
Scope = Literal["submit", "read", "work", "operate", "admin", "metrics"]
Config = dict[str, Json]


class PoolRetryIn(In):
    """How failed attempts of a pool's tasks are repeated, unless the task says otherwise."""

    max_attempts: Whole | None = None
    initial_backoff: Number | None = None
    multiplier: Number | None = None
    max_backoff: Number | None = None


class _PoolFieldsIn(In):
    config: Config | None = Field(None, description="What the executor needs; never a secret, only where one is")
    min: Whole | None = Field(None, description="Slots at least")
    max: Whole | None = Field(None, description="Slots at most, up to 10,000")
    retry: PoolRetryIn | None = None
    lease_ttl: Number | None = Field(None, description="Seconds after which a silent worker's task is taken back")
    timeout: Seconds | None = Field(None, description="Seconds that one attempt may take")
    default_duration: Seconds | None = Field(None, description="Expected seconds of a task that does not say")
    slo: dict[Priority, Seconds] | None = Field(None, description="Seconds that a class may wait, by class")
    autoscale: AutoscaleIn | None = Field(None, description="Follow the demand between min and max; null: fixed slots")
    unknown_dependency: UnknownDependency | None = Field(
        None, description="Tasks that come after a key nobody has used are refused (reject, default) or wait (await)"
    )
    reservable_fraction: Number | None = Field(
        None, description="Part of max that fixed starts may book at once; at least one slot (0.5)"
    )
    await_timeout: Number | None = Field(None, description="Seconds to wait for such a key; then the task is skipped")
    max_pending: Whole | None = Field(None, description="Tasks that may wait, whatever for; 100,000 unless you say")
    overflow: Text | None = Field(None, description="What one more does: reject, shed_lowest or shed_oldest")
    cost_per_worker_second_usd: Usd | None = Field(None, description="What a second of a worker costs; null: nothing")
    allow_degraded: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="Whether attempts may be asked to answer only while the pool is overloaded"
    )

    def changes(self) -> dict[str, Any]:
        """What was given, by the names of `PoolSettings`."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        retry = given.pop("retry", None)
        if self.autoscale is not None:
            given["autoscale"] = self.autoscale.settings()
        if self.cost_per_worker_second_usd is not None:
            given["cost_per_worker_second_usd"] = parse_usd(self.cost_per_worker_second_usd)
        given |= {name: getattr(retry, name) for name in retry.model_fields_set} if retry is not None else {}
        return {
            setting: given[name]
            for name, setting in _SETTINGS.items()
            if name in given and (given[name] is not None or name in _NULLABLE)
        }


class PoolIn(_PoolFieldsIn):
    """A pool to declare."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "llm",
                    "executor": "llm",
                    "min": 4,
                    "max": 64,
                    "config": {"base_url": "https://api.example/v1"},
                }
            ]
        }
    )

    name: Text
    executor: Executor
    initial: Whole | None = Field(None, description="Slots to begin with; `max` when left out")
    reason: Reason = ""

    def settings(self) -> PoolSettings:
        """The settings of the new pool."""
        changes = {"slots_max": 10} | self.changes()
        return PoolSettings(**{"slots": changes["slots_max"]} | changes)


class PoolEditIn(_PoolFieldsIn):
    """What to change of a pool; what is left out stays."""

    version: Version
    slots: Whole | None = Field(None, description="Slots now")
    reason: Reason = ""


_SETTINGS: Final = {
    "config": "config",
    "min": "slots_min",
    "max": "slots_max",
    "initial": "slots",
    "slots": "slots",
    "max_attempts": "max_attempts",
    "initial_backoff": "backoff_initial_s",
    "multiplier": "backoff_multiplier",
    "max_backoff": "backoff_max_s",
    "lease_ttl": "lease_ttl_s",
    "timeout": "timeout_s",
    "default_duration": "duration_default_s",
    "slo": "slo",
    "autoscale": "autoscale",
    "unknown_dependency": "unknown_dependency",
    "await_timeout": "await_timeout_s",
    "reservable_fraction": "reservable_fraction",
    "max_pending": "max_pending",
    "overflow": "overflow",
    "allow_degraded": "allow_degraded",
    "cost_per_worker_second_usd": "worker_second_nano",
}
_NULLABLE: Final = frozenset({"timeout", "slo", "autoscale", "await_timeout", "cost_per_worker_second_usd"})


class PoolRetryOut(Out):
    """How failed attempts are repeated."""

    max_attempts: int
    initial_backoff: float
    multiplier: float
    max_backoff: float


class PauseIn(In):
    """Why a pool is paused, and for how long."""

    reason: Reason = ""
    for_s: Seconds | None = Field(None, description="Seconds until it resumes by itself; null: until it is resumed")


class PauseOut(Out):
    """Who paused a pool, when and why. `resumes_at` null: until somebody resumes it."""

    by: str
    reason: str
    at: datetime
    resumes_at: datetime | None = None


class OverloadOut(Out):
    """How overloaded a pool is: 1 refuses new low work, 2 also asks attempts to answer only, 3 also refuses normal."""

    level: int
    since: datetime | None
    predicted_wait: float | None = Field(description="Seconds, of the class that is worst off against its objective")


class PoolOut(Out):
    """A pool now. `config` is shown to tokens with the scope `admin` only."""

    name: str
    executor: str
    state: Literal["running", "paused"]
    pause: PauseOut | None
    version: int
    min: int
    max: int
    slots: int
    retry: PoolRetryOut
    lease_ttl: float
    timeout: float | None
    default_duration: float
    slo: dict[str, float] | None
    autoscale: AutoscaleOut | None
    unknown_dependency: str
    await_timeout: float | None
    reservable_fraction: float
    max_pending: int
    overflow: str
    allow_degraded: bool
    cost_per_worker_second_usd: str | None
    overload: OverloadOut
    config: Config | None
    waiting: dict[str, int] = Field(description="Ready tasks by class")
    scheduled: int = Field(description="Tasks that wait for a time or for other tasks")
    running: int


class PoolsOut(Out):
    """All pools by name."""

    pools: list[PoolOut]


def present_pool(found: PoolDetail, *, with_config: bool) -> PoolOut:
    """The pool as it is sent."""
    s = found.settings
    return PoolOut(
        name=found.name,
        executor=found.executor,
        state="paused" if found.pause else "running",
        pause=None if found.pause is None else _pause(found.pause),
        version=found.version,
        min=s.slots_min,
        max=s.slots_max,
        slots=s.slots,
        retry=PoolRetryOut(
            max_attempts=s.max_attempts,
            initial_backoff=s.backoff_initial_s,
            multiplier=s.backoff_multiplier,
            max_backoff=s.backoff_max_s,
        ),
        lease_ttl=s.lease_ttl_s,
        timeout=s.timeout_s,
        default_duration=s.duration_default_s,
        slo=None if s.slo is None else dict(s.slo),
        autoscale=None if s.autoscale is None else AutoscaleOut.of(s.autoscale),
        unknown_dependency=s.unknown_dependency.value,
        await_timeout=s.await_timeout_s,
        reservable_fraction=s.reservable_fraction,
        max_pending=s.max_pending,
        overflow=s.overflow,
        allow_degraded=s.allow_degraded,
        cost_per_worker_second_usd=None if s.worker_second_nano is None else format_usd(s.worker_second_nano),
        overload=_overload(found),
        config=dict(s.config) if with_config else None,
        waiting=dict(found.waiting),
        scheduled=found.scheduled,
        running=found.running,
    )


def _overload(found: PoolDetail) -> OverloadOut:
    wait_s = None if found.predicted_s is None else round(found.predicted_s, 2)
    return OverloadOut(level=found.overload_level, since=at(found.overload_since), predicted_wait=wait_s)


def _pause(pause: Pause) -> PauseOut:
    resumes_at = None if pause.resumes_at is None else moment(pause.resumes_at)
    return PauseOut(by=pause.by, reason=pause.reason, at=moment(pause.at), resumes_at=resumes_at)


class TokenIn(In):
    """A token to make."""

    tenant: Text | None = Field(None, description="Whose; left out, the token acts for every tenant")
    scopes: Annotated[list[Scope], Field(min_length=1)]
    pools: list[Text] | None = Field(None, description="Pools it may submit to; left out, any")
    expires_at: Moment | None = None
    name: Annotated[Text, Field(max_length=200)] = ""
    reason: Reason = ""


class TokenOut(Out):
    """A new token. `token` is shown this once; a repetition of the request has null."""

    id: str
    token: str | None
