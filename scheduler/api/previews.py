"""Previews over REST: what an edit would do to the waits of the work that is there. Nothing is changed by asking."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from scheduler.api.access import OPERATE_ALL
from scheduler.api.answers import In, Out, moment, respond
from scheduler.api.fields import PROBLEMS, Number, Problem, Text, Whole
from scheduler.api.router import Router
from scheduler.api.tenant_schemas import QuotaIn
from scheduler.api.threads import in_pool
from scheduler.policy.calibration import Band
from scheduler.policy.preview import Change
from scheduler.policy.types import PriorityClass
from scheduler.services.forecast import band_body
from scheduler.services.preview import Previewed, preview_pool, preview_resource, preview_tenant

router = Router(tags=["previews"])


class PoolPreviewIn(In):
    """What would be changed of a pool."""

    slots: Whole | None = None
    paused: bool | None = None


class ResourcePreviewIn(In):
    """What would be changed of a limit."""

    rate: Number | None = None
    burst: Number | None = None
    permits: Whole | None = None
    margin: Number | None = None
    ceilings: dict[Text, Number] | None = Field(None, description="Parts of the burst that a class must leave")


class TenantPreviewIn(In):
    """What would be changed of a tenant, as an edit of it says it."""

    weight: Number | None = None
    status: Literal["active", "suspended"] | None = None
    quota: QuotaIn | None = None

    @property
    def suspended(self) -> bool | None:
        """Whether it would be suspended; None: as it is."""
        return None if self.status is None else self.status == "suspended"

    def changes(self) -> dict[str, Any]:
        """What was given that can change a wait, by the names of the service."""
        limits = {} if self.quota is None else self.quota.by_name()
        return ({} if self.weight is None else {"weight": self.weight}) | limits


class BandOut(Out):
    """A predicted wait; null: not within the next 15 minutes."""

    p50_s: float | None
    p90_s: float | None


class ChangeOut(Out):
    """The predicted wait of a task submitted now, without the edit and with it."""

    pool: str
    priority: str
    before: BandOut | None
    after: BandOut | None


class PreviewOut(Out):
    """What an edit would do to the work that is there. `unknown` pools have too few recent starts to say anything."""

    changes: list[ChangeOut]
    own: list[ChangeOut] = Field(description="Of the tenant whose edit it is")
    unknown: list[str] = Field(description="Pools of which there is insufficient data")
    says: list[str]
    as_of: datetime


@router.post(
    "/pools/{name}/preview",
    auth=OPERATE_ALL,
    operation_id="preview_pool",
    response={200: PreviewOut, PROBLEMS: Problem},
)
@in_pool
def post_pool_preview(request: HttpRequest, name: str, body: PoolPreviewIn) -> HttpResponse:
    """What other slots, or a pause, would do to the waits in every pool."""
    return respond(200, _present(preview_pool(name, slots=body.slots, paused=body.paused)))


@router.post(
    "/resources/{name}/preview",
    auth=OPERATE_ALL,
    operation_id="preview_resource",
    response={200: PreviewOut, PROBLEMS: Problem},
)
@in_pool
def post_resource_preview(request: HttpRequest, name: str, body: ResourcePreviewIn) -> HttpResponse:
    """What another limit would do to the waits in every pool."""
    changes = {field: value for field, value in body.model_dump().items() if value is not None}
    return respond(200, _present(preview_resource(name, changes)))


@router.post(
    "/tenants/{slug}/preview",
    auth=OPERATE_ALL,
    operation_id="preview_tenant",
    response={200: PreviewOut, PROBLEMS: Problem},
)
@in_pool
def post_tenant_preview(request: HttpRequest, slug: str, body: TenantPreviewIn) -> HttpResponse:
    """What another weight, other limits, or a suspension, would do to a tenant's waits and to those of all."""
    return respond(200, _present(preview_tenant(slug, body.changes(), suspended=body.suspended)))


def _present(found: Previewed) -> PreviewOut:
    preview, names = found.preview, found.pools
    unknown = sorted(names[pool] for pool in preview.unknown if pool in names)
    rows = [_change(names.get(pool, ""), p, change) for (pool, p), change in preview.seats.items()]
    own = [_change(names.get(pool, ""), p, change) for (pool, p), change in preview.own.items()]
    says = [f"Insufficient data about {name}: fewer than 20 recent starts." for name in unknown]
    return PreviewOut(
        changes=rows, own=own, unknown=unknown, says=[*map(_sentence, own or rows), *says], as_of=moment(found.as_of)
    )


def _change(pool: str, priority: PriorityClass, change: Change) -> ChangeOut:
    return ChangeOut(pool=pool, priority=priority.label, before=_band(change.before), after=_band(change.after))


def _band(band: Band | None) -> BandOut | None:
    return None if band is None else BandOut(**band_body(band))


def _sentence(change: ChangeOut) -> str:
    before, after = _p90(change.before), _p90(change.after)
    moved = f"stays at {before}" if before == after else f"goes from {before} to {after}"
    return f"The p90 wait of {change.priority} in {change.pool} {moved}."


def _p90(band: BandOut | None) -> str:
    if band is None or band.p90_s is None:
        return "more than 15 min"
    return f"{band.p90_s:.1f} s"
