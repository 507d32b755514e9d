"""The page of one schedule: what is ahead, what came of it, and the form that shows what it would do."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.reads.schedule_pages import AHEAD, Run, ScheduleRow, schedule_row, story
from scheduler.services.schedules import foresee
from scheduler.web import audit_story, schedule_words, task_story
from scheduler.web.access import EDIT_SCHEDULE, VIEW_CONSOLE, VIEW_PAYLOAD, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import missing, page
from scheduler.web.task_story import when


@require_safe
@needs(VIEW_CONSOLE)
def schedule(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """One schedule."""
    return schedule_page(request, schedule_id)


def schedule_page(
    request: HttpRequest, schedule_id: int, *, status: int = 200, reason: str = "", fault: str = ""
) -> HttpResponse:
    """The page of a schedule, after a refused action with the input kept and the fault beside it."""
    before = _moment(request.GET.get("before", ""))
    try:
        told = story(schedule_id, before=before)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    row, zone = told.row, told.row.declared.time_zone
    ahead = schedule_words.ahead_lines(told.ahead, zone, now=told.now)
    here = reverse("ops:schedule", kwargs={"schedule_id": schedule_id})
    text = orjson.dumps(row.declared.task).decode()
    return page(
        request,
        "ops/schedule.html",
        title=row.name,
        nav="schedules",
        status=status,
        schedule=row,
        chip=schedule_words.stands(row),
        headline=schedule_words.headline(row, ahead),
        rhythm=schedule_words.rhythm(row.declared.cron),
        clock_rule=schedule_words.clock_rule(row.declared.cron),
        overlap=schedule_words.OVERLAPS[row.declared.overlap],
        catch_up=schedule_words.CATCH_UPS[row.declared.catch_up],
        ahead=ahead,
        history=[schedule_words.occurrence_line(each, zone) for each in told.history],
        paged=before is not None,
        older=f"{here}?{urlencode({'before': told.history[-1].nominal})}#history-h" if told.more else "",
        newer=f"{here}#history-h" if before is not None else "",
        looked=when(told.now),
        page_url=here,
        key=secrets.token_urlsafe(12),
        may_edit=may(request, EDIT_SCHEDULE),
        permission=EDIT_SCHEDULE,
        reason=reason,
        fault=fault,
        **audit_story.panel(request, f"schedule:{row.tenant_slug}/{row.name}", told.audit),
        document=task_story.document_of(
            "The task it submits", text, shown=may(request, VIEW_PAYLOAD), permission=VIEW_PAYLOAD
        ),
    )


def _moment(text: str) -> float | None:
    try:
        at = float(text)
    except ValueError:
        return None
    return at if 0.0 < at < 1e11 else None  # noqa: PLR2004 - the year 5138


@require_safe
@needs(EDIT_SCHEDULE)
def edit(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """The form, with the runs that its values give."""
    try:
        row = schedule_row(schedule_id)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    return edit_page(request, row, values_of(row))


def values_of(row: ScheduleRow) -> dict[str, str]:
    """What the form shows of a schedule."""
    declared = row.declared
    return {
        "cron": declared.cron,
        "time_zone": declared.time_zone,
        "overlap": declared.overlap.value,
        "catch_up": declared.catch_up.value,
        "reason": "",
    }


def edit_page(
    request: HttpRequest,
    row: ScheduleRow,
    values: dict[str, str],
    *,
    version: str = "",
    status: int = 200,
    errors: Sequence[FieldError] = (),
    fault: str = "",
) -> HttpResponse:
    """The form with these values and the runs that they would give, after a refusal with the faults beside them."""
    foreseen, faults = foreseen_of(values)
    found = [*errors, *(fault for fault in faults if fault not in errors)]
    fields, rest = with_faults(rhythm_fields(values, values_of(row)), found)
    return page(
        request,
        "ops/schedule_edit.html",
        title="Edit a schedule",
        nav="schedules",
        status=max(status, 422) if faults else status,
        schedule=row,
        version=version or str(row.version),
        fields=fields,
        fault=" ".join([fault, *rest]).strip(),
        seen=f"{values['cron']}|{values['time_zone']}",
        **foreseen,
    )


def foreseen_of(values: Mapping[str, str]) -> tuple[dict[str, Any], Sequence[FieldError]]:
    """What a form shows of the runs that its values give: none beside the faults, where they give none."""
    try:
        now, found = foresee(values["cron"], values["time_zone"], runs_max=AHEAD)
    except Refused as refusal:
        return {"ahead": [], "rhythm": "", "clock_rule": ""}, refusal.errors
    lines = schedule_words.ahead_lines([Run(*each) for each in found], values["time_zone"], now=now)
    cron = values["cron"] if lines else ""
    rhythm, clock_rule = (schedule_words.rhythm(cron), schedule_words.clock_rule(cron)) if cron else ("", "")
    return {"ahead": lines, "rhythm": rhythm, "clock_rule": clock_rule}, ()


def rhythm_fields(values: Mapping[str, str], current: Mapping[str, str] | None = None) -> list[Field]:
    """When it runs, and why it is declared or changed; beside what differs from `current` stands what that is."""

    def now(name: str, said: str = "") -> str:
        return said if current is None or values[name] == current[name] else f"{said} Now {current[name]}.".strip()

    return [
        Field(
            "cron",
            "Expression",
            values["cron"],
            now("cron", "Minute, hour, day of the month, month, day of the week; with six fields, seconds first."),
            required=True,
            extra={"maxlength": "200", "spellcheck": "false"},
        ),
        Field(
            "time_zone",
            "Time zone",
            values["time_zone"],
            now("time_zone", "By its name, like Europe/Berlin."),
            required=True,
            extra={"maxlength": "64", "spellcheck": "false"},
        ),
        Field(
            "overlap",
            "When the one before has not ended",
            values["overlap"],
            now("overlap"),
            kind="select",
            options=[(each.value, schedule_words.OVERLAPS[each]) for each in Overlap],
        ),
        Field(
            "catch_up",
            "Times that nobody was there for",
            values["catch_up"],
            now("catch_up"),
            kind="select",
            options=[(each.value, schedule_words.CATCH_UPS[each]) for each in CatchUp],
        ),
        Field("reason", "Reason", values["reason"], "Needed to save; kept in the audit.", extra={"maxlength": "200"}),
    ]
