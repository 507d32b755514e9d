"""Adds tenants and edits their weight, status and limits. A suspended tenant's tasks wait; those that run go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.declarations import QuotaSettings, faults_in_quota, faults_in_tenant
from scheduler.policy.payload import fault_in_text
from scheduler.services.again import again
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import control as store

NAME_CHARS_MAX: Final = 200
UNLIMITED: Final = QuotaSettings()
_QUOTA: Final = frozenset(each.name for each in fields(QuotaSettings))


@again
def add_tenant(
    slug: str,
    *,
    name: str = "",
    weight: float = 1.0,
    time_zone: str = "UTC",
    quota: QuotaSettings = UNLIMITED,
    actor: str,
    reason: str = "",
    source: str = "ui",
) -> store.TenantRow:
    """Declare a tenant, active. Raises Refused with every fault, Conflict when the slug is taken."""
    author = Author(actor, source, reason)
    check_reason(author)
    quota = _with_burst(quota)
    _refuse(slug, name=name, weight=weight, status="active", time_zone=time_zone, quota=quota)
    with transaction.atomic():
        if store.add_tenant(slug, name=name, weight=weight, time_zone=time_zone, quota=quota) is None:
            errors = (FieldError(("slug",), "This slug is taken; choose another or edit that one."),)
            raise Conflict(f"There is a tenant {slug!r} already.", code="name_taken", errors=errors)
        row = load_tenant(slug)
        record(author, "tenant.add", f"tenant:{slug}", after=_declared(row))
        return row


@again
def edit_tenant(
    slug: str, version: int, changes: Mapping[str, Any], *, actor: str, reason: str = "", source: str = "ui"
) -> store.TenantRow:
    """Change `name`, `weight`, `status`, `time_zone`, or limits by their names in `QuotaSettings`.

    Raises NotFound, VersionConflict when `version` is not the current one, Refused with every fault.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_tenant(slug)
        if row.version != version:
            raise VersionConflict(f"The tenant {slug!r}", sent=version, current=row.version)
        declared = _declared(row)
        unknown = tuple(FieldError((n,), f"A tenant has no setting {n!r}.") for n in changes if n not in declared)
        refuse(unknown, code="bad_tenant")
        quota = changed_quota(row.quota, changes)
        named = {n: v for n, v in {**declared, **changes}.items() if n not in _QUOTA}
        _refuse(slug, **named, quota=quota)
        wanted = {**named, **asdict(quota)}
        if store.edit_tenant(slug, version=version, **named, quota=quota) is None:
            raise VersionConflict(f"The tenant {slug!r}", sent=version, current=load_tenant(slug).version)
        if row.status == "suspended" and named["status"] == "active":
            store.seat_as_idle(row.id)
        before, after = differences(declared, wanted)
        record(author, "tenant.edit", f"tenant:{slug}", before=before, after=after)
        return load_tenant(slug)


def load_tenant(slug: str) -> store.TenantRow:
    """The tenant of that slug. Raises NotFound."""
    rows = store.load_tenants([slug]) if "\x00" not in slug else []
    if not rows:
        raise NotFound(f"There is no tenant {slug!r}.", code="unknown_tenant")
    return rows[0]


def _declared(row: store.TenantRow) -> dict[str, Any]:
    named = {"name": row.name, "weight": row.weight, "status": row.status, "time_zone": row.time_zone}
    return {**named, **asdict(row.quota)}


def changed_quota(quota: QuotaSettings, changes: Mapping[str, Any]) -> QuotaSettings:
    """Limits with those changed that are named; whoever takes a rate away takes its burst too."""
    limits = {n: v for n, v in changes.items() if n in _QUOTA}
    if limits.get("start_rate", 0.0) is None:
        limits.setdefault("start_burst", None)
    return _with_burst(replace(quota, **limits))


def _with_burst(quota: QuotaSettings) -> QuotaSettings:
    """A rate without a burst lets one second's worth start at once; without a rate there is no burst either."""
    if quota.start_rate is not None and quota.start_burst is None:
        return replace(quota, start_burst=max(1.0, quota.start_rate))
    return quota


def _refuse(slug: str, *, name: str, weight: float, status: str, time_zone: str, quota: QuotaSettings) -> None:
    faults = [*faults_in_tenant(slug, weight=weight, status=status), *faults_in_quota(quota)]
    said = fault_in_text(name)
    if said is not None:
        faults.append(FieldError(("name",), f"The name {said}."))
    if len(name) > NAME_CHARS_MAX:
        faults.append(FieldError(("name",), f"A name has at most {NAME_CHARS_MAX} characters."))
    if not _is_zone(time_zone):
        faults.append(FieldError(("time_zone",), f"{time_zone!r} is not the name of a time zone, like Europe/Berlin."))
    refuse(tuple(faults), code="bad_tenant")


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
