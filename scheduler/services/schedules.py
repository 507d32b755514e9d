"""Declares, edits, pauses, resumes and removes schedules. A change is versioned and audited in its own transaction.

A new or changed expression counts from now; nothing else moves the nominal time that is next. A paused schedule
keeps it, so that resuming leaves what came meanwhile to the schedule's catch-up policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import tzinfo
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.policy import templates
from scheduler.policy.admission import Submission
from scheduler.policy.cron import Cron, next_run, parse, runs, utc_offset_s
from scheduler.policy.payload import fault_in_text
from scheduler.policy.types import TenantId
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import dispatch as dispatch_store
from scheduler.store import schedules as store
from scheduler.store.schedules import Declared, ScheduleRow

__all__ = ["Declared"]

SCHEDULES_PER_TENANT_MAX: Final = 1_000
KEY_CHARS_MAX: Final = 170
"""A template's key is a prefix: the nominal time of the occurrence comes behind it."""
OCCURRENCES_KEEP_S: Final = 30 * 86_400.0
OCCURRENCES_FORGET_MAX: Final = 10_000


def add_schedule(tenant: TenantId, name: str, declared: Declared, author: Author) -> ScheduleRow:
    """Declare a schedule; its first occurrence is the next one from now. Raises Refused, Conflict when it exists."""
    check_reason(author)
    cron, zone = _checked(declared)
    with transaction.atomic():
        if store.count(tenant) >= SCHEDULES_PER_TENANT_MAX:
            detail = f"A tenant has at most {SCHEDULES_PER_TENANT_MAX} schedules."
            raise Refused(detail, code="too_many_schedules")
        next_at = next_run(cron, zone, after=dispatch_store.load_now())
        if store.add(tenant, name, declared, next_at=next_at) is None:
            errors = (FieldError(("name",), "This name is taken; choose another or edit that one."),)
            raise Conflict(f"There is a schedule {name!r} already.", code="name_taken", errors=errors)
        row = find_schedule(tenant, name)
        record(author, "schedule.add", _subject(row), after=_told(row))
        return row


def edit_schedule(tenant: TenantId, name: str, version: int, changes: Mapping[str, Any], author: Author) -> ScheduleRow:
    """Change `cron`, `time_zone`, `task`, `overlap` or `catch_up`.

    Raises NotFound, VersionConflict when `version` is not the current one, Refused with every fault.
    """
    check_reason(author)
    with transaction.atomic():
        row = _locked(tenant, name)
        if row.version != version:
            raise VersionConflict(f"The schedule {name!r}", sent=version, current=row.version)
        wanted = replace(row.declared, **changes)
        cron, zone = _checked(wanted)
        next_at = row.next_at
        if (wanted.cron, wanted.time_zone) != (row.declared.cron, row.declared.time_zone):
            next_at = next_run(cron, zone, after=_after_all_decided(row))
        store.edit(row.id, wanted, version=version, next_at=next_at)
        after = find_schedule(tenant, name)
        before_told, after_told = differences(_told(row), _told(after))
        record(author, "schedule.edit", _subject(row), before=before_told, after=after_told)
        return after


def foresee(cron: str, time_zone: str, *, runs_max: int) -> tuple[float, list[tuple[float, float]]]:
    """Now, and when a schedule would run next: Unix seconds, and how far its clock is ahead of UTC then, in seconds.

    Raises Refused with every fault, as declaring it would.
    """
    parsed, zone = _parsed(cron, time_zone)
    now = dispatch_store.load_now()
    return now, [(at, utc_offset_s(zone, at)) for at in islice(runs(parsed, zone, after=now), runs_max)]


def _after_all_decided(row: ScheduleRow) -> float:
    """Now, or if the clock went back since, the newest time that was decided: none is decided again."""
    return max(dispatch_store.load_now(), store.newest_decided(row.id) or 0.0)


def pause_schedule(tenant: TenantId, name: str, author: Author) -> ScheduleRow:
    """Submit nothing until it is resumed. Raises NotFound, Conflict when it is paused."""
    check_reason(author)
    with transaction.atomic():
        row = _locked(tenant, name)
        if not store.pause(row.id, actor=author.actor[:200], reason=author.reason):
            raise Conflict(f"The schedule {name!r} is paused already.", code="already_paused")
        record(author, "schedule.pause", _subject(row))
        return find_schedule(tenant, name)


def resume_schedule(tenant: TenantId, name: str, author: Author) -> ScheduleRow:
    """Go on; what came meanwhile is made up for as `catch_up` says. Raises NotFound, Conflict when it is not paused."""
    check_reason(author)
    with transaction.atomic():
        row = _locked(tenant, name)
        if not store.resume(row.id):
            raise Conflict(f"The schedule {name!r} is not paused.", code="not_paused")
        record(author, "schedule.resume", _subject(row))
        return find_schedule(tenant, name)


def remove_schedule(tenant: TenantId, name: str, author: Author) -> None:
    """Remove a schedule and the record of its occurrences; tasks that were submitted stay. Raises NotFound."""
    check_reason(author)
    with transaction.atomic():
        row = _locked(tenant, name)
        store.remove(row.id)
        record(author, "schedule.remove", _subject(row), before=_told(row))


def forget_occurrences() -> int:
    """Forget what became of occurrences long ago; returns how many."""
    return store.forget_occurrences(keep_s=OCCURRENCES_KEEP_S, rows_max=OCCURRENCES_FORGET_MAX)


def find_schedule(tenant: TenantId | None, name: str) -> ScheduleRow:
    """The schedule of that name. Raises NotFound; Refused when `tenant` is None and several tenants have one."""
    rows = store.load(tenant, name, rows_max=2) if fault_in_text(name) is None else []
    if not rows:
        raise NotFound(f"There is no schedule {name!r}.", code="unknown_schedule")
    if len(rows) > 1:
        detail = "Several tenants have a schedule of that name; say which one with 'tenant'."
        raise Refused(detail, code="tenant_required", errors=(FieldError(("tenant",), detail),))
    return rows[0]


def _locked(tenant: TenantId, name: str) -> ScheduleRow:
    if fault_in_text(name) is None:
        store.lock(tenant, name)
    return find_schedule(tenant, name)


def described(submission: Submission) -> dict[str, Any]:
    """The description of a task as a schedule keeps it. Raises Refused when it holds what belongs to one time only."""
    faults = [
        FieldError(("task", name), f"A task of a schedule has no {name}: the schedule says when.")
        for name in templates.misplaced(submission)
    ]
    if submission.key is not None and len(submission.key) > KEY_CHARS_MAX:
        faults.append(
            FieldError(("task", "key"), f"The key of a schedule's task has at most {KEY_CHARS_MAX} characters.")
        )
    refuse(tuple(faults), code="bad_schedule")
    return templates.written(submission)


def _checked(declared: Declared) -> tuple[Cron, tzinfo]:
    return _parsed(declared.cron, declared.time_zone)


def _parsed(text: str, time_zone: str) -> tuple[Cron, tzinfo]:
    faults = []
    cron = parse(text)
    if isinstance(cron, str):
        faults.append(FieldError(("cron",), cron))
    zone = _zone(time_zone)
    if zone is None:
        said = f"{time_zone!r} is not the name of a time zone, like Europe/Berlin."
        faults.append(FieldError(("time_zone",), said))
    if isinstance(cron, str) or zone is None:
        raise Refused(" ".join(fault.msg for fault in faults), code="bad_schedule", errors=tuple(faults))
    return cron, zone


def _zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _subject(row: ScheduleRow) -> str:
    return f"schedule:{row.tenant_slug}/{row.name}"


def _told(row: ScheduleRow) -> dict[str, object]:
    return asdict(row.declared)
