"""Pausing, resuming, changing and removing a schedule, and running it now.

A change is saved only after the runs that it gives were shown.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.engine.doorbell import ring
from scheduler.errors import Conflict, FieldError, NotFound, Refused, Unavailable
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.policy.types import TenantId
from scheduler.reads.schedule_pages import ScheduleRow, schedule_row
from scheduler.services.changes import Author
from scheduler.services.idempotency import Answer, once
from scheduler.services.running_now import run_schedule_now
from scheduler.services.schedules import edit_schedule, pause_schedule, remove_schedule, resume_schedule
from scheduler.web.access import EDIT_SCHEDULE, needs
from scheduler.web.acting import author_of, done, reason_of
from scheduler.web.schedule_page import edit_page, schedule_page, values_of
from scheduler.web.shell import missing
from scheduler.web.toast import Toast, Undo


@require_POST
@needs(EDIT_SCHEDULE)
def pause(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """It submits nothing until it is resumed. The reason is required."""
    if not reason_of(request):
        said = "Say why, so that the next person knows when to resume."
        return schedule_page(request, schedule_id, status=422, fault=said)
    undo = Undo(reverse("ops:schedule-resume", kwargs={"schedule_id": schedule_id}), reason="undo")
    return _move(request, schedule_id, pause_schedule, Toast("Paused. What it submitted before goes on.", undo=undo))


@require_POST
@needs(EDIT_SCHEDULE)
def resume(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Go on; what came meanwhile is made up for as the schedule says."""
    return _move(request, schedule_id, resume_schedule, Toast("Resumed. What came meanwhile is caught up as declared."))


@require_POST
@needs(EDIT_SCHEDULE)
def run_now(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Submit its task once, beside its times. The same form sent twice submits one."""

    def act() -> Answer:
        row = schedule_row(schedule_id)
        task = run_schedule_now(row.tenant, row.name, author_of(request))
        return Answer(201, orjson.dumps({"task": task}).decode())

    try:
        form = request.POST.get("key", "")
        answer = once(f"person {request.user.pk}", form, f"run schedule {schedule_id}".encode(), act)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    except (Conflict, Refused, Unavailable) as refusal:
        status = 422 if isinstance(refusal, Refused) else 409
        return schedule_page(request, schedule_id, status=status, fault=f"{refusal.detail} Nothing was submitted.")
    ring()
    task = orjson.loads(answer.body)["task"]
    return done(request, reverse("ops:task", kwargs={"task_id": task}), Toast(f"Submitted as task {task}."))


@require_POST
@needs(EDIT_SCHEDULE)
def remove(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Remove it with the record of its times; its tasks stay. The reason is required: there is no way back."""
    if not reason_of(request):
        return schedule_page(request, schedule_id, status=422, fault="Say why it is removed: the reason stays.")
    try:
        row = schedule_row(schedule_id)
        remove_schedule(row.tenant, row.name, author_of(request))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    return done(request, reverse("ops:schedules"), Toast(f"Removed the schedule {row.name}. Its tasks stay."))


def _move(
    request: HttpRequest, schedule_id: int, act: Callable[[TenantId, str, Author], ScheduleRow], toast: Toast
) -> HttpResponse:
    try:
        row = schedule_row(schedule_id)
        act(row.tenant, row.name, author_of(request))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    except (Conflict, Refused) as refusal:
        status = 409 if isinstance(refusal, Conflict) else 422
        said = f"{refusal.detail} Nothing was changed."
        return schedule_page(request, schedule_id, status=status, reason=reason_of(request), fault=said)
    return done(request, reverse("ops:schedule", kwargs={"schedule_id": schedule_id}), toast)


@require_POST
@needs(EDIT_SCHEDULE)
def save(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Show the runs that these values give; or change it, if they were shown and nobody changed it meanwhile."""
    try:
        row = schedule_row(schedule_id)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    values = {name: request.POST.get(name, "").strip() for name in values_of(row)}
    version = request.POST.get("version", "")
    if "look" in request.POST:
        return edit_page(request, row, values, version=version)
    errors = _faults(values)
    if not version.isdigit():
        version = str(row.version)
        errors.append(FieldError(("version",), "Load the form again."))
    if errors:
        return edit_page(request, row, values, version=version, status=422, errors=errors)
    if request.POST.get("seen", "") != f"{values['cron']}|{values['time_zone']}":
        said = "These are the runs that it would give. Save again if they are what you mean."
        return edit_page(request, row, values, version=version, status=422, fault=said)
    changes = {
        "cron": values["cron"],
        "time_zone": values["time_zone"],
        "overlap": Overlap(values["overlap"]),
        "catch_up": CatchUp(values["catch_up"]),
    }
    try:
        edit_schedule(row.tenant, row.name, int(version), changes, author_of(request))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    except Conflict as refusal:
        said = f"{refusal.detail} What you typed is kept beside what is current; save again to replace that."
        return edit_page(request, row, values, status=409, fault=said)
    except Refused as refusal:
        return edit_page(request, row, values, version=version, status=422, errors=refusal.errors)
    toast = Toast("The schedule was changed. A new expression counts from now.")
    return done(request, reverse("ops:schedule", kwargs={"schedule_id": schedule_id}), toast)


def _faults(values: dict[str, str]) -> list[FieldError]:
    known = {"overlap": [each.value for each in Overlap], "catch_up": [each.value for each in CatchUp]}
    faults = [FieldError((n,), "Choose one of the list.") for n, options in known.items() if values[n] not in options]
    if not values["reason"]:
        faults.append(FieldError(("reason",), "Say why: it stays in the audit."))
    return faults
