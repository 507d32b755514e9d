"""Decides whether pools, limits, tenants and tokens can be declared as an operator asks for, and says what to change.

It knows the bounds and nothing else: not whether a name is taken, not who asks, not what an executor makes of its
configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler.errors import FieldError
from scheduler.policy.admission import ATTEMPTS_MAX
from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.bounds import Overflow
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.money import NANO
from scheduler.policy.payload import fault_in_json, fault_in_text
from scheduler.policy.runs import COST_MAX_NANO, STEPS_MAX, WIDTH_MAX
from scheduler.policy.types import PriorityClass, ResourceKind

SLOTS_MAX: Final = 10_000
LEASE_TTL_MAX_S: Final = 3_600.0
BACKOFF_MAX_S: Final = 86_400.0
DURATION_MAX_S: Final = 7 * 86_400.0
RATE_MAX: Final = 1e9
PERMITS_MAX: Final = 1_000_000
QUEUED_MAX: Final = 2**31 - 1
OVERRIDE_MAX_S: Final = 366 * 86_400.0
WEIGHT_MAX: Final = 1_000_000.0
REASON_CHARS_MAX: Final = 500

EXECUTORS: Final = ("python", "llm", "remote", "http")
SCOPES: Final = ("submit", "read", "work", "operate", "admin", "metrics")
STATUSES: Final = ("active", "suspended")

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

Faults = tuple[FieldError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """What an operator may set on a pool. Times in seconds; `timeout_s` None: attempts may take as long they like.

    `slo` is the wait that a class (by its label) may have. `autoscale` None: the number of slots is fixed.
    `await_timeout_s` None: a key that nobody has used is awaited for ever, where it is awaited. At most
    `max_pending` tasks may wait, whatever for; `overflow` says what happens to one more. `allow_degraded`: an
    overloaded pool may ask attempts to answer only. `worker_second_nano` is what a second of a worker costs.
    """

    config: Mapping[str, object] = field(default_factory=dict)
    slots_min: int = 1
    slots_max: int = 10
    slots: int = 10
    max_attempts: int = 3
    backoff_initial_s: float = 1.0
    backoff_multiplier: float = 2.0
    backoff_max_s: float = 60.0
    lease_ttl_s: float = 30.0
    timeout_s: float | None = None
    duration_default_s: float = 1.0
    slo: Mapping[str, float] | None = None
    autoscale: AutoscaleSettings | None = None
    unknown_dependency: UnknownDependency = UnknownDependency.REJECT
    await_timeout_s: float | None = None
    reservable_fraction: float = 0.5
    max_pending: int = 100_000
    overflow: str = Overflow.REJECT.value
    allow_degraded: bool = False
    worker_second_nano: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What an operator may set on a shared limit: `rate` per second and `burst` of a token bucket, or `permits`.

    0 means paused: work that needs the limit waits until it is raised. `ceilings` are the parts of a bucket's burst
    that a class (by its label) must leave free.
    """

    rate: float = 0.0
    burst: float = 0.0
    permits: int = 0
    margin: float = 0.02
    ceilings: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideSettings:
    """What goes before a declared limit for a while; `until` in Unix seconds, None: until it is lifted."""

    rate: float | None = None
    burst: float | None = None
    permits: int | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSettings:
    """A tenant's own limits; None is none.

    `start_rate` is starts per second, of up to `start_burst` at once; `max_in_flight` counts running attempts,
    `max_queued` tasks that wait, whatever for. The others are what each of its runs may have at most, and has
    if it does not say: steps, steps that run at once, nano-dollars.
    """

    start_rate: float | None = None
    start_burst: float | None = None
    max_in_flight: int | None = None
    max_queued: int | None = None
    max_steps_per_run: int | None = None
    max_width_per_run: int | None = None
    max_cost_per_run_nano: int | None = None


def fault_in_name(name: str) -> FieldError | None:
    """What is wrong with the name of a pool or a resource."""
    if _NAME.fullmatch(name):
        return None
    return FieldError(("name",), "A name has 1 to 64 letters, digits and the signs _ . : - and nothing else.")


def fault_in_slug(slug: str) -> FieldError | None:
    """What is wrong with a tenant's slug."""
    if _SLUG.fullmatch(slug):
        return None
    return FieldError(
        ("slug",), "A slug has 1 to 64 lower-case letters, digits, _ and -, and begins with none of these two."
    )


def faults_in_pool(name: str, executor: str, settings: PoolSettings) -> Faults:
    """Everything that has to change before this pool can be declared."""
    s = settings
    found = [
        fault_in_name(name),
        None if executor in EXECUTORS else _fault("executor", f"There are these executors: {', '.join(EXECUTORS)}."),
        fault_in_json(s.config, ("config",)),
        _outside("min", s.slots_min, 0, SLOTS_MAX),
        _outside("max", s.slots_max, 0, SLOTS_MAX),
        None
        if s.slots_min <= s.slots_max
        else _fault("min", f"The least ({s.slots_min}) is above the most ({s.slots_max})."),
        None
        if s.slots_min <= s.slots <= s.slots_max
        else _fault("slots", f"{s.slots} is not between min ({s.slots_min}) and max ({s.slots_max})."),
        _outside("max_attempts", s.max_attempts, 1, ATTEMPTS_MAX),
        _outside("initial_backoff", s.backoff_initial_s, 0.0, BACKOFF_MAX_S),
        _outside("multiplier", s.backoff_multiplier, 1.0, 100.0),
        _outside("max_backoff", s.backoff_max_s, 0.0, BACKOFF_MAX_S),
        _outside("lease_ttl", s.lease_ttl_s, 1.0, LEASE_TTL_MAX_S),
        None if s.timeout_s is None else _outside("timeout", s.timeout_s, 0.001, DURATION_MAX_S),
        _outside("default_duration", s.duration_default_s, 0.001, DURATION_MAX_S),
        *_faults_in_slo(s.slo or {}),
        _outside("max_pending", s.max_pending, 0, QUEUED_MAX),
        _fault_in_overflow(s.overflow),
        *(_faults_in_autoscale(s.autoscale) if s.autoscale is not None else ()),
        None
        if s.worker_second_nano is None
        else _outside("cost_per_worker_second_usd", s.worker_second_nano / NANO, 0, 1_000.0),
        _outside("reservable_fraction", s.reservable_fraction, 0.0, 1.0),
        None if s.await_timeout_s is None else _outside("await_timeout", s.await_timeout_s, 0.0, DURATION_MAX_S),
    ]
    return tuple(fault for fault in found if fault is not None)


def _fault_in_overflow(overflow: str) -> FieldError | None:
    if overflow in set(Overflow):
        return None
    if overflow == "wait":
        return _fault("overflow", "Only a submitter in the same process can be made to wait; use reject or shed.")
    return _fault("overflow", f"A full pool can do one of these: {', '.join(Overflow)}.")


def _faults_in_slo(slo: Mapping[str, float]) -> list[FieldError | None]:
    labels = [p.label for p in PriorityClass]
    return [
        _beyond(("slo", label), seconds, 0.001, DURATION_MAX_S)
        if label in labels
        else FieldError(("slo", label), f"{label!r} is not a class; there are {', '.join(labels)}.")
        for label, seconds in slo.items()
    ]


def _faults_in_autoscale(a: AutoscaleSettings) -> list[FieldError | None]:
    return [
        _beyond(("autoscale", name), value, least, most)
        for name, value, least, most in (
            ("interval", a.interval_s, 0.1, 3_600.0),
            ("target_utilization", a.target_utilization, 0.05, 1.0),
            ("drain_time", a.drain_time_s, 0.1, DURATION_MAX_S),
            ("reservation_horizon", a.reservation_horizon_s, 0.0, 86_400.0),
            ("stabilization_window", a.stabilization_window_s, 0.1, 86_400.0),
            ("cooldown", a.cooldown_s, 0.0, 86_400.0),
            ("max_step_up_abs", a.step_up_abs_max, 1, SLOTS_MAX),
            ("max_step_down", a.step_down_max, 1, SLOTS_MAX),
        )
    ]


def faults_in_limit(name: str, kind: ResourceKind, settings: LimitSettings) -> Faults:
    """Everything that has to change before this limit can be declared."""
    s = settings
    found = [fault_in_name(name)]
    if kind is ResourceKind.TOKEN_BUCKET:
        found += [
            _outside("rate", s.rate, 0.0, RATE_MAX),
            _outside("burst", s.burst, 0.0, RATE_MAX),
            _fault("permits", "A token bucket has a rate and a burst; leave permits out.") if s.permits else None,
        ]
    else:
        unwanted = s.rate or s.burst
        found += [
            _outside("permits", s.permits, 0, PERMITS_MAX),
            _fault("rate", "A semaphore has permits; leave rate and burst out.") if unwanted else None,
        ]
    found += _faults_in_ceilings(s.ceilings or {}, kind)
    found.append(None if 0.0 <= s.margin < 1.0 else _fault("margin", "A margin is a fraction from 0 to below 1."))
    return tuple(fault for fault in found if fault is not None)


def _faults_in_ceilings(ceilings: Mapping[str, float], kind: ResourceKind) -> list[FieldError | None]:
    if ceilings and kind is not ResourceKind.TOKEN_BUCKET:
        return [_fault("ceilings", "Only a token bucket has ceilings; leave them out.")]
    labels = [p.label for p in PriorityClass]
    return [
        FieldError(("ceilings", label), f"{label!r} is not a class; there are {', '.join(labels)}.")
        if label not in labels
        else None
        if 0.0 <= part < 1.0
        else FieldError(("ceilings", label), "A ceiling is the part of the burst to leave free, from 0 to below 1.")
        for label, part in ceilings.items()
    ]


def faults_in_override(kind: ResourceKind, override: OverrideSettings, *, now: float) -> Faults:
    """Everything that has to change before this override can be set."""
    o = override
    given = LimitSettings(rate=o.rate or 0.0, burst=o.burst or 0.0, permits=o.permits or 0)
    found = [f for f in faults_in_limit("override", kind, given) if f.loc != ("margin",)]
    if o.rate is None and o.burst is None and o.permits is None:
        names = "rate or burst" if kind is ResourceKind.TOKEN_BUCKET else "permits"
        found.append(_fault("rate", f"Say what to override: {names}.") if not found else found[0])
    if o.until is not None and not now < o.until <= now + OVERRIDE_MAX_S:
        found.append(_fault("until", "An override ends within a year from now, or when it is lifted."))
    return tuple(dict.fromkeys(found))


def faults_in_quota(quota: QuotaSettings) -> Faults:
    """Everything that has to change before a tenant can have these limits."""
    q = quota
    found = [
        None if q.start_rate is None else _beyond(("quota", "start_rate"), q.start_rate, 0.0, RATE_MAX),
        None if q.start_burst is None else _beyond(("quota", "start_burst"), q.start_burst, 1.0, RATE_MAX),
        None if q.max_in_flight is None else _beyond(("quota", "max_in_flight"), q.max_in_flight, 0, QUEUED_MAX),
        None if q.max_queued is None else _beyond(("quota", "max_queued"), q.max_queued, 0, QUEUED_MAX),
        *_faults_in_run_quota(q),
        FieldError(("quota", "start_burst"), "A start_burst goes with a start_rate; give both or neither.")
        if q.start_rate is None and q.start_burst is not None
        else None,
    ]
    return tuple(fault for fault in found if fault is not None)


def _faults_in_run_quota(quota: QuotaSettings) -> list[FieldError | None]:
    bounds = (
        ("max_steps_per_run", quota.max_steps_per_run, STEPS_MAX),
        ("max_width_per_run", quota.max_width_per_run, WIDTH_MAX),
        ("max_cost_per_run_usd", quota.max_cost_per_run_nano, COST_MAX_NANO),
    )
    return [None if value is None else _beyond(("quota", name), value, 1, most) for name, value, most in bounds]


def faults_in_tenant(slug: str, *, weight: float, status: str) -> Faults:
    """Everything that has to change before this tenant can be declared. Weight 0: served when nobody else waits."""
    found = [
        fault_in_slug(slug),
        _outside("weight", weight, 0.0, WEIGHT_MAX),
        None if status in STATUSES else _fault("status", f"A tenant is {' or '.join(STATUSES)}."),
    ]
    return tuple(fault for fault in found if fault is not None)


def faults_in_scopes(scopes: Sequence[str]) -> Faults:
    """What is wrong with the scopes of a token."""
    if not scopes:
        return (_fault("scopes", f"Name at least one scope of: {', '.join(SCOPES)}."),)
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        return (_fault("scopes", f"{unknown[0]!r} is not a scope; there are {', '.join(SCOPES)}."),)
    return ()


def fault_in_reason(reason: str) -> FieldError | None:
    """What is wrong with the reason an operator gives for a change."""
    if len(reason) > REASON_CHARS_MAX:
        return _fault("reason", f"A reason has at most {REASON_CHARS_MAX} characters.")
    said = fault_in_text(reason)
    return None if said is None else _fault("reason", f"The reason {said}.")


def _outside(name: str, value: float, least: float, most: float) -> FieldError | None:
    return _beyond((name,), value, least, most)


def _beyond(loc: tuple[str, ...], value: float, least: float, most: float) -> FieldError | None:
    # Written so that NaN, which compares false with everything, is outside too.
    if least <= value <= most:
        return None
    return FieldError(loc, f"{' '.join(loc)} must be from {least:g} to {most:g}; {value:g} is not.")


def _fault(name: str, msg: str) -> FieldError:
    return FieldError((name,), msg)
