"""Draws the page that edits a limit, pool or tenant: the form, what it would do, both versions when two were at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from scheduler.errors import FieldError
from scheduler.reads.audit import AuditFilter, list_events
from scheduler.web import times
from scheduler.web.effects import Effect
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import page

KINDS: Final = {
    "resource": ("Resources", "ops:resources"),
    "pool": ("Pools", "ops:pools"),
    "tenant": ("Tenants", "ops:tenants"),
}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: what is declared, what is in force, and (on a conflict) what the person wanted."""

    name: str
    declared: str
    force: str
    wanted: str = ""

    @property
    def differs(self) -> bool:
        """Whether the person wanted something else than what is declared now."""
        return self.wanted != self.declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What is edited: `route` is one of `KINDS`, `subject` its name in the audit, `rows` what it has now.

    `part` is what its addresses call its name; `aspect` is what of it is edited, for example ``budget``, when its page
    has several forms: that of an aspect has no preview.
    """

    subject: str
    name: str
    version: int
    nav: str
    route: str
    fields: Sequence[Field]
    by_class: Sequence[Field]
    by_class_title: str
    by_class_note: str
    note: str
    rows: Sequence[SettingRow]
    part: str = "name"
    aspect: str = ""


def sheet_page(
    request: HttpRequest,
    sheet: Sheet,
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
    effect: Effect | None = None,
    conflict: bool = False,
) -> HttpResponse:
    """The page, with the faults beside their fields, the effect, or the conflict."""
    fields, _ = with_faults(sheet.fields, errors)
    by_class, _ = with_faults(sheet.by_class, errors)
    _, other = with_faults([*fields, *by_class], errors)
    kind, list_route = KINDS[sheet.route]
    where = {sheet.part: sheet.name}
    own = f"{sheet.route}-{sheet.aspect}" if sheet.aspect else sheet.route
    return page(
        request,
        "ops/edit.html",
        title=f"Edit {sheet.name}",
        doing=sheet.aspect.capitalize() or "Edit",
        nav=sheet.nav,
        status=status,
        kind=kind,
        name=sheet.name,
        version=sheet.version,
        list_url=reverse(list_route),
        back_url=reverse(f"ops:{sheet.route}", kwargs=where),
        save_url=reverse(f"ops:{own}-save", kwargs=where),
        preview_url="" if sheet.aspect else reverse(f"ops:{sheet.route}-preview", kwargs=where),
        fields=fields,
        by_class=by_class,
        by_class_open=any(field.value or field.fault for field in by_class),
        by_class_title=sheet.by_class_title,
        by_class_note=sheet.by_class_note,
        note=sheet.note,
        faults=other,
        effect=effect,
        conflict=_conflict(request, sheet) if conflict else None,
    )


def _conflict(request: HttpRequest, sheet: Sheet) -> dict[str, Any]:
    events = list_events(AuditFilter(subject=sheet.subject), cursor=None, rows_max=1).events
    change = events[0] if events else None
    return {
        "by": "" if change is None else change.actor,
        "reason": "" if change is None else change.reason,
        "when": "" if change is None else times.clock(change.at),
        "mine": request.POST.get("version", ""),
        "rows": sheet.rows,
    }


def version_of(request: HttpRequest) -> int:
    """The version that the form was made from; 0, which no thing has, when it says none."""
    text = request.POST.get("version", "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0  # noqa: PLR2004 - digits of a bigint
