"""Has the pools, limits and tenants that a program declares exist as it declares them.

What code declares goes before what was there; what it says nothing about stays: pauses, overrides, how many slots a
pool of the same bounds has, and everything another program or an operator declared. Every change is audited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeVar

from scheduler import conf
from scheduler.errors import Conflict, CronoqError, NotFound
from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.declarations import LimitSettings, PoolSettings
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.types import ResourceKind, TenantId
from scheduler.sdk.declarations import AutoscaleConfig, Pool, Resource, RetryPolicy
from scheduler.sdk.embedded.submissions import seconds
from scheduler.sdk.errors import SchedulerError
from scheduler.services.pools import add_pool, edit_pool, load_pool
from scheduler.services.resources import add_resource, edit_resource, load_resource
from scheduler.services.tenants import add_tenant, edit_tenant, load_tenant

ACTOR: Final = "sdk"
REASON: Final = "declared by a program"
SOURCE: Final = "system"
TRIES: Final = 5
"""Programs that start at the same time declare the same things; each sees the other's work at the next try."""
EXECUTOR: Final = "python"
T = TypeVar("T")


def declare(pools: Iterable[Pool], resources: Iterable[Resource]) -> None:
    """Add or edit what differs. Raises SchedulerError with what to change."""
    try:
        for resource in resources:
            _repeated(lambda resource=resource: _declare_resource(resource))  # type: ignore[misc]  # bound at once
        for pool in pools:
            _repeated(lambda pool=pool: _declare_pool(pool))  # type: ignore[misc]  # bound at once
            for slug, weight in (pool.tenant_weights or {}).items():
                _repeated(lambda slug=slug, weight=weight: _declare_tenant(slug, weight))  # type: ignore[misc]  # as above
    except CronoqError as error:
        raise SchedulerError(error.detail) from error


def tenant_id(slug: str) -> TenantId:
    """The tenant of that slug, made when it is new. Raises Refused for one that cannot be a slug."""
    return _repeated(lambda: _tenant(slug))


def set_slots(name: str, slots: int) -> None:
    """Give a pool so many slots now. Raises Refused outside its bounds, NotFound."""
    _repeated(lambda: edit_pool(name, load_pool(name).version, {"slots": slots}, **_author("set_capacity")))


def _repeated(step: Callable[[], T]) -> T:
    """Do it again when another program was quicker."""
    for _ in range(TRIES - 1):
        try:
            return step()
        except Conflict:
            continue
    return step()


def _author(reason: str = REASON) -> dict[str, Any]:
    return {"actor": ACTOR, "reason": reason, "source": SOURCE}


def _declare_resource(resource: Resource) -> None:
    kind = ResourceKind(resource.kind)
    wanted = {n: getattr(resource, n) for n in ("rate", "burst", "permits", "margin")}
    try:
        row = load_resource(resource.name)
    except NotFound:
        add_resource(resource.name, kind, LimitSettings(**wanted), **_author())
        return
    if row.view.kind is not kind:
        detail = f"There is a resource {resource.name!r} that is a {row.view.kind}, not a {kind}; use another name."
        raise SchedulerError(detail)
    changes = _changes(asdict(row.declared), wanted)
    if changes:
        edit_resource(resource.name, row.version, changes, **_author())


def _declare_pool(pool: Pool) -> None:
    wanted = _settings(pool)
    first = pool.min if pool.autoscale is not None else pool.max
    slots = first if pool.initial is None else pool.initial
    try:
        row = load_pool(pool.name)
    except NotFound:
        add_pool(pool.name, EXECUTOR, PoolSettings(slots=slots, **wanted), **_author())
        return
    if row.executor != EXECUTOR:
        detail = (
            f"There is a pool {pool.name!r} that is run by the executor {row.executor!r}, not by a function; "
            "use another name, or another database."
        )
        raise SchedulerError(detail)
    changes = _changes(asdict(row.settings), wanted)
    if {"slots_min", "slots_max"} & changes.keys():
        changes["slots"] = slots
    if changes:
        # The dictionaries above are plain; what is stored are values.
        changes = {name: wanted.get(name, slots) for name in changes}
        edit_pool(pool.name, row.version, changes, **_author())


def _settings(pool: Pool) -> dict[str, Any]:
    retry = pool.retry or RetryPolicy()
    ttl_s = conf.current().lease_ttl_default_s if pool.lease_ttl is None else seconds(pool.lease_ttl)
    settings: dict[str, Any] = {
        "slots_min": pool.min,
        "slots_max": pool.max,
        "max_attempts": retry.max_attempts,
        "backoff_initial_s": seconds(retry.initial_backoff),
        "backoff_multiplier": retry.multiplier,
        "backoff_max_s": seconds(retry.max_backoff),
        "lease_ttl_s": ttl_s,
        "duration_default_s": seconds(pool.default_duration),
        "unknown_dependency": UnknownDependency(pool.unknown_dependency),
        "await_timeout_s": None if pool.await_timeout is None else seconds(pool.await_timeout),
        "reservable_fraction": pool.reservable_fraction,
        # Only a submitter in this process can be made to wait: what is stored refuses, and the scheduler waits.
        "overflow": "reject" if pool.overflow == "wait" else pool.overflow,
        "autoscale": None if pool.autoscale is None else _autoscale(pool.autoscale),
    }
    if pool.max_pending is not None:
        settings["max_pending"] = pool.max_pending
    if pool.autoscale is not None:
        settings["slo"] = dict(pool.autoscale.slo) if pool.autoscale.slo else None
    return settings


def _autoscale(config: AutoscaleConfig) -> AutoscaleSettings:
    return AutoscaleSettings(
        interval_s=seconds(config.interval),
        target_utilization=config.target_utilization,
        drain_time_s=seconds(config.drain_time),
        reservation_horizon_s=seconds(config.reservation_horizon),
        stabilization_window_s=seconds(config.stabilization_window),
        cooldown_s=seconds(config.cooldown),
        step_up_abs_max=config.max_step_up_abs,
        step_down_max=config.max_step_down,
    )


def _changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    plain = {n: asdict(v) if isinstance(v, AutoscaleSettings) else v for n, v in wanted.items()}
    return {name: value for name, value in plain.items() if stored[name] != value}


def _declare_tenant(slug: str, weight: float) -> None:
    try:
        row = load_tenant(slug)
    except NotFound:
        add_tenant(slug, weight=weight, **_author())
        return
    if row.weight != weight:
        edit_tenant(slug, row.version, {"weight": weight}, **_author())


def _tenant(slug: str) -> TenantId:
    try:
        return load_tenant(slug).id
    except NotFound:
        return add_tenant(slug, **_author("first used by a program")).id
