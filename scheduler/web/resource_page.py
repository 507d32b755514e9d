"""The page of one shared limit, and the page that edits it: what goes in is still, only what is left of it moves."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound
from scheduler.live import wording
from scheduler.live.frames import Key
from scheduler.live.newest import newest
from scheduler.policy.types import ResourceKind
from scheduler.reads.history import last_hour
from scheduler.reads.resources import HOLDERS_MAX, ResourceDetail, resource_detail, resource_use
from scheduler.web import times
from scheduler.web.access import EDIT_RESOURCE, VIEW_CONSOLE, may, needs
from scheduler.web.edit_sheet import SettingRow, Sheet, sheet_page
from scheduler.web.effects import Effect
from scheduler.web.history_chart import USED, WAITING, hour_charts, hour_table
from scheduler.web.limit_form import CLASSES, ceiling_fields, fields_of, figure_text, percent_text
from scheduler.web.shell import missing, page

OLD_HOLDER_S: Final = 3_600.0
"""A permit held this long is worth a look: it is named in the headline of the holders."""


@require_safe
@needs(VIEW_CONSOLE)
def resource(request: HttpRequest, name: str) -> HttpResponse:
    """One limit: what is left of it, who holds it, who waits for it, and what may be done about it."""
    return resource_page(request, name)


@require_safe
@needs(EDIT_RESOURCE)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """The form that changes a limit, for good or for a while."""
    return edit_page(request, name)


LIMIT_HOUR: Final = (USED, WAITING)


def resource_page(
    request: HttpRequest, name: str, *, status: int = 200, reason: str = "", fault: str = ""
) -> HttpResponse:
    """The page of a limit, after a refused action with the input kept and the fault beside it."""
    try:
        detail = resource_detail(name)
    except NotFound:
        return no_such_resource(request, name)
    use = resource_use(detail)
    hour = last_hour("limit", detail.name, now=use.as_of)
    waiters = [
        {"pool": each.pool, "cls": each.priority.label, "number": each.number, "share": _share(each.number, detail)}
        for each in use.waiters
    ]
    return page(
        request,
        "ops/resource.html",
        title=detail.name,
        nav="resources",
        live=Key("resource", detail.name),
        status=status,
        resource=detail,
        settings=setting_rows(detail),
        override_until=_until(detail),
        waiters=waiters,
        holders=[_holder(each, use.as_of) for each in use.holders],
        holders_max=HOLDERS_MAX,
        holders_say=_holders_say(detail, [use.as_of - each.since for each in use.holders]),
        hour_charts=hour_charts(hour, LIMIT_HOUR),
        hour_table=hour_table(hour, LIMIT_HOUR),
        looked=times.clock(use.as_of),
        looked_machine=wording.machine(use.as_of),
        breaker_open=detail.breaker_state.value != "closed",
        lowered=detail.view.factor < 1.0,
        may_edit=may(request, EDIT_RESOURCE),
        reason=reason,
        fault=fault,
    )


def _share(number: int, detail: ResourceDetail) -> str:
    return wording.percent(number / detail.waiting) if detail.waiting else wording.NONE


def _holder(each: Any, now: float) -> dict[str, Any]:
    return {
        "task": each.task,
        "pool": each.pool,
        "tenant": each.tenant,
        "cls": each.priority.label,
        "amount": wording.amount(each.amount),
        "age": wording.duration(now - each.since),
        "since": times.day_and_clock(each.since),
        "since_machine": wording.machine(each.since),
    }


def _holders_say(detail: ResourceDetail, ages_s: Sequence[float]) -> str:
    if not ages_s:
        return ""
    oldest = wording.duration(ages_s[0])
    if detail.view.kind is ResourceKind.TOKEN_BUCKET:
        return f"the longest has run for {oldest}"
    held = f"{wording.amount(detail.held)} of {wording.amount(detail.capacity)} held"
    hint = "; a permit held this long may be stuck" if ages_s[0] >= OLD_HOLDER_S else ""
    return f"{held}, the longest for {oldest}{hint}"


def _until(detail: ResourceDetail) -> str:
    if detail.override is None:
        return ""
    until = detail.override.until
    return "until somebody lifts it" if until is None else f"until {times.day_and_clock(until)}"


def setting_rows(detail: ResourceDetail, posted: QueryDict | None = None) -> list[SettingRow]:
    """Every setting of a limit, declared and in force, and as posted where there is a post."""
    declared, force = detail.declared, detail.view
    rows = []
    if force.kind is ResourceKind.TOKEN_BUCKET:
        figures = [("rate", "Rate, tokens per second"), ("burst", "Burst, tokens")]
    else:
        figures = [("permits", "Permits")]
    for name, label in figures:
        rows.append(
            _setting(label, name, figure_text(getattr(declared, name)), figure_text(getattr(force, name)), posted)
        )
    if force.kind is ResourceKind.TOKEN_BUCKET:
        rows.append(_setting("Margin, %", "margin", percent_text(declared.margin), percent_text(force.margin), posted))
        for cls in CLASSES:
            left = percent_text((declared.ceilings or {}).get(cls))
            if left or (posted is not None and posted.get(cls)):
                rows.append(_setting(f"Left free by {cls}, %", cls, left or "0", left or "0", posted))
    return rows


def _setting(label: str, name: str, declared: str, force: str, posted: QueryDict | None) -> SettingRow:
    return SettingRow(label, declared, force, "" if posted is None else posted.get(name, declared).strip())


def edit_page(
    request: HttpRequest,
    name: str,
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
    effect: Effect | None = None,
    conflict: bool = False,
) -> HttpResponse:
    """The form with what is declared in it, or what was posted; with its faults, or the effect that it would have."""
    try:
        detail = resource_detail(name)
    except NotFound:
        return no_such_resource(request, name)
    posted = request.POST if request.method == "POST" else None
    sheet = Sheet(
        subject=f"resource:{detail.name}",
        name=detail.name,
        version=detail.version,
        nav="resources",
        route="resource",
        fields=fields_of(detail, posted),
        by_class=ceiling_fields(detail, posted),
        by_class_title="Left free by class",
        by_class_note="part of the burst that a class must leave for more urgent ones",
        note=_note(detail),
        rows=setting_rows(detail, posted),
    )
    return sheet_page(request, sheet, status=status, errors=errors, effect=effect, conflict=conflict)


def _note(detail: ResourceDetail) -> str:
    if detail.override is None:
        return ""
    other = ", ".join(f"{row.name} {row.force}" for row in setting_rows(detail) if row.declared != row.force)
    return f"Other figures go first {_until(detail)}: {other}. What you declare counts after them."


def no_such_resource(request: HttpRequest, name: str) -> HttpResponse:
    """The page that says that there is no such limit, with names much like it."""
    known = [each.name for each in newest.look().board.resources]
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return missing(request, f"There is no resource named “{name}”.", near=near, near_at=reverse("ops:resources"))
