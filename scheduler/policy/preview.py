"""Decides what an edit would do to the waits of the work that is there: the forecast of now, with the edit and without.

Both look ahead from one scene and with the same chance, and let the same work go on to come as it did lately, so that
what differs is the edit's doing. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never

from scheduler.policy.calibration import Band
from scheduler.policy.declarations import QuotaSettings
from scheduler.policy.forecast import Forecast, foretell
from scheduler.policy.learned import Learned, Seat
from scheduler.policy.limits import capacity
from scheduler.policy.quotas import Quota
from scheduler.policy.scene import Scene
from scheduler.policy.types import PoolId, PriorityClass, ResourceId, ResourceKind, TenantId, TenantView

RUNS: Final = 3


@dataclass(frozen=True, slots=True)
class PoolEdit:
    """Other slots for a pool, or paused or not. `grows`: workers would offer as many slots as the pool has."""

    pool: PoolId
    slots: int | None = None
    paused: bool | None = None
    grows: bool = True


@dataclass(frozen=True, slots=True)
class LimitEdit:
    """Another size of a limit. 0 means paused. `ceilings`, by class, are what the class must leave of a burst."""

    resource: ResourceId
    rate: float | None = None
    burst: float | None = None
    permits: int | None = None
    margin: float | None = None
    ceilings: Mapping[PriorityClass, float] | None = None


@dataclass(frozen=True, slots=True)
class TenantEdit:
    """Another weight of a tenant, or suspended or not; `quota` are all its limits as they would be."""

    tenant: TenantId
    weight: float | None = None
    suspended: bool | None = None
    quota: QuotaSettings | None = None


Edit = PoolEdit | LimitEdit | TenantEdit


@dataclass(frozen=True, slots=True)
class Change:
    """The wait of a task submitted now, without the edit and with it; None where it was not looked for."""

    before: Band | None
    after: Band | None


@dataclass(frozen=True, slots=True)
class Preview:
    """By pool and class; `own` for the tenant of the edit. Of `unknown` pools too little is known to say anything."""

    seats: dict[Seat, Change]
    own: dict[Seat, Change]
    unknown: frozenset[PoolId]


def preview_edit(scene: Scene, edit: Edit, learned: Learned, *, chance: Callable[[], Callable[[], float]]) -> Preview:
    """Look ahead twice. `chance` makes the same stream of numbers in [0, 1) each time it is called."""
    before = foretell(scene, learned, draw=chance(), runs=RUNS)
    after = foretell(edited(scene, edit), learned, draw=chance(), runs=RUNS)
    own = edit.tenant if isinstance(edit, TenantEdit) else None
    return Preview(
        _changes(before.seats, after.seats),
        {} if own is None else _changes(_of_tenant(before, own), _of_tenant(after, own)),
        frozenset(pool for pool in scene.pools if not learned.is_enough(pool)),
    )


def edited(scene: Scene, edit: Edit) -> Scene:
    """The scene as the edit would leave it. What the scene does not have is not edited."""
    match edit:
        case PoolEdit():
            return _with_pool(scene, edit)
        case LimitEdit():
            return _with_limit(scene, edit)
        case TenantEdit():
            return _with_tenant(scene, edit)
        case _:
            assert_never(edit)


def _with_pool(scene: Scene, edit: PoolEdit) -> Scene:
    view = scene.pools.get(edit.pool)
    if view is None:
        return scene
    slots = view.slots if edit.slots is None else edit.slots
    paused = view.paused if edit.paused is None else edit.paused
    offers = dict(scene.offers)
    if edit.grows and offers.get(edit.pool, 0) > 0:
        offers[edit.pool] = max(offers[edit.pool], slots)
    return replace(scene, pools={**scene.pools, edit.pool: replace(view, slots=slots, paused=paused)}, offers=offers)


def _with_limit(scene: Scene, edit: LimitEdit) -> Scene:
    view = scene.resources.get(edit.resource)
    if view is None:
        return scene
    view = replace(
        view,
        rate=view.rate if edit.rate is None else edit.rate,
        burst=view.burst if edit.burst is None else edit.burst,
        permits=view.permits if edit.permits is None else edit.permits,
        margin=view.margin if edit.margin is None else edit.margin,
    )
    if edit.ceilings is not None:
        critical, high, normal, low = (edit.ceilings.get(p, 0.0) for p in PriorityClass)
        view = replace(view, ceilings=(critical, high, normal, low))
    if view.kind is ResourceKind.TOKEN_BUCKET:
        view = replace(view, level=min(view.level, capacity(view)))
    return replace(scene, resources={**scene.resources, edit.resource: view})


def _with_tenant(scene: Scene, edit: TenantEdit) -> Scene:
    view = scene.tenants.get(edit.tenant)
    if view is None:
        return scene
    weight = view.weight if edit.weight is None else edit.weight
    suspended = view.suspended if edit.suspended is None else edit.suspended
    changed = replace(view, weight=weight, suspended=suspended)
    if edit.quota is not None:
        changed = _with_quota(changed, edit.quota, now=scene.now)
    return replace(scene, tenants={**scene.tenants, edit.tenant: changed})


def _with_quota(view: TenantView, quota: QuotaSettings, *, now: float) -> TenantView:
    """A bucket that is new is full; one that is edited keeps what it has, as far as that fits."""
    burst = quota.start_burst or 1.0
    level = burst if view.start_rate is None else min(burst, Quota(view, now).level)
    return replace(
        view,
        start_rate=quota.start_rate,
        start_burst=burst,
        start_level=level,
        start_level_at=now,
        max_in_flight=quota.max_in_flight,
    )


def _of_tenant(forecast: Forecast, tenant: TenantId) -> dict[Seat, Band]:
    """The longest wait of a tenant's lanes, by pool and class."""
    bands: dict[Seat, Band] = {}
    for lane, curve in forecast.lanes.items():
        if lane.tenant == tenant:
            seat = (lane.pool, lane.priority)
            bands[seat] = max(bands.get(seat, Band(0.0, 0.0)), curve.at(curve.waiting + 1))
    return bands


def _changes(before: Mapping[Seat, Band], after: Mapping[Seat, Band]) -> dict[Seat, Change]:
    return {seat: Change(before.get(seat), after.get(seat)) for seat in sorted({*before, *after})}
