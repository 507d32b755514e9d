"""Reads the form that edits a shared limit, and draws it again: what is asked for, and what is wrong with it.

It parses text into figures and says which edit that is. Whether the figures are allowed is for the services to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from django.http import QueryDict

from scheduler.errors import FieldError
from scheduler.live import wording
from scheduler.policy.bold import is_bold
from scheduler.policy.declarations import PERMITS_MAX, RATE_MAX, LimitSettings, OverrideSettings
from scheduler.policy.types import PriorityClass, ResourceKind
from scheduler.reads.resources import ResourceDetail
from scheduler.web.fields import Field

FOR_EVER, UNTIL, LIFTED = "", "until", "lifted"
LASTS: Final = (
    (FOR_EVER, "From now on: this is what is declared"),
    ("900", "For 15 minutes, then what is declared"),
    ("3600", "For 1 hour, then what is declared"),
    ("14400", "For 4 hours, then what is declared"),
    ("86400", "For 24 hours, then what is declared"),
    (UNTIL, "Until the time given, then what is declared"),
    (LIFTED, "Until somebody lifts it"),
)
CLASSES: Final = tuple(p.label for p in PriorityClass)
_UNTIL_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
_PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a form asks for: other settings by name, or (with `lasts`) an override. `faults` say what is wrong.

    `for_s` are seconds from now, `until` Unix seconds; both None: until somebody lifts it.
    """

    version: int
    changes: Mapping[str, Any]
    lasts: bool
    for_s: float | None
    until: float | None
    reason: str
    faults: tuple[FieldError, ...]

    @property
    def override(self) -> OverrideSettings:
        """The figures that would go first for a while."""
        return OverrideSettings(
            rate=self.changes.get("rate"),
            burst=self.changes.get("burst"),
            permits=self.changes.get("permits"),
            until=self.until,
        )


def figures_of(kind: ResourceKind) -> tuple[str, ...]:
    """The settings of a kind that can be overridden for a while."""
    return ("rate", "burst") if kind is ResourceKind.TOKEN_BUCKET else ("permits",)


def read_form(posted: QueryDict, detail: ResourceDetail) -> Wanted:
    """What the form asks for, compared with what is declared. A field that is missing asks for nothing."""
    faults: list[FieldError] = []
    kind, declared = detail.view.kind, detail.declared
    given: dict[str, Any] = {}
    for name in figures_of(kind):
        value = _figure(posted, name, faults, whole=name == "permits")
        if value is not None:
            given[name] = value
    margin = _figure(posted, "margin", faults)
    if margin is not None:
        given["margin"] = margin / _PERCENT
    if kind is ResourceKind.TOKEN_BUCKET and any(cls in posted for cls in CLASSES):
        given["ceilings"] = _ceilings(posted, faults)
    changes = {name: value for name, value in given.items() if value != _plain(declared, name)}
    lasts = posted.get("lasts", FOR_EVER)
    if lasts not in dict(LASTS):
        faults.append(FieldError(("lasts",), "Choose how long it goes."))
    faults += _faults_in_lasting(lasts, changes, figures_of(kind))
    until = _until(posted.get("until", ""), faults) if lasts == UNTIL else None
    reason = posted.get("reason", "").strip()
    if not reason and not faults and (bold := _bold(changes, detail)):
        faults.append(FieldError(("reason",), f"Say why: {bold}."))
    return Wanted(
        version=int(version) if (version := posted.get("version", "")).isdecimal() and len(version) < 19 else 0,  # noqa: PLR2004 - a bigint
        changes=changes,
        lasts=lasts != FOR_EVER,
        for_s=float(lasts) if lasts.isdecimal() else None,
        until=until,
        reason=reason,
        faults=tuple(faults),
    )


def _plain(declared: LimitSettings, name: str) -> Any:
    value = getattr(declared, name)
    return (dict(value) if value else None) if name == "ceilings" else value


def _figure(posted: QueryDict, name: str, faults: list[FieldError], *, whole: bool = False) -> float | int | None:
    text = posted.get(name)
    if text is None:
        return None
    plain = text.strip().replace(",", "")
    try:
        value = int(plain) if whole else float(plain)
    except ValueError:
        faults.append(FieldError((name,), f"Write a {'whole ' if whole else ''}number, for example 40."))
        return None
    if not isfinite(value):
        faults.append(FieldError((name,), "Write a number, for example 40."))
        return None
    return value


def _ceilings(posted: QueryDict, faults: list[FieldError]) -> dict[str, float] | None:
    found = {}
    for cls in CLASSES:
        if posted.get(cls, "").strip():
            part = _figure(posted, cls, faults)
            if part:
                found[cls] = part / _PERCENT
    return found or None


def _faults_in_lasting(lasts: str, changes: Mapping[str, Any], figures: tuple[str, ...]) -> list[FieldError]:
    if lasts == FOR_EVER:
        return []
    found = [
        FieldError(
            (name if name == "margin" else "lasts",), f"The {name} cannot be changed for a while; leave it as it is."
        )
        for name in changes
        if name not in figures
    ]
    if not changes:
        found.append(FieldError((figures[0],), "This is what is declared; write what should go first for a while."))
    return found


def _until(text: str, faults: list[FieldError]) -> float | None:
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        faults.append(FieldError(("until",), "Write a day and a time in UTC."))
        return None


def _bold(changes: Mapping[str, Any], detail: ResourceDetail) -> str:
    """Which figure changes so much that it must be explained; empty when none does."""
    view = detail.view
    force = {"rate": view.rate, "burst": view.burst, "permits": view.permits}
    for name, value in changes.items():
        if name in force and value >= 0 and is_bold(force[name], value):
            way = "stops all that needs it" if value == 0 else "changes by more than half"
            return f"with {name} {wording.amount(value)} it {way}"
    return ""


def fields_of(detail: ResourceDetail, posted: QueryDict | None = None) -> list[Field]:
    """The fields with what is declared in them, or with what was posted."""
    fields = [*_figure_fields(detail), *_lasting_fields()]
    if posted is None:
        return fields
    return [replace(each, value=posted.get(each.name, each.value)) for each in fields]


def ceiling_fields(detail: ResourceDetail, posted: QueryDict | None = None) -> list[Field]:
    """One field per class: the part of the burst to leave free for more urgent ones."""
    if detail.view.kind is not ResourceKind.TOKEN_BUCKET:
        return []
    declared = detail.declared.ceilings or {}
    fields = [
        Field(cls, f"{cls.capitalize()}, %", percent_text(declared.get(cls)), kind="number", extra=_numeric(99))
        for cls in CLASSES
    ]
    return fields if posted is None else [replace(each, value=posted.get(each.name, each.value)) for each in fields]


def _figure_fields(detail: ResourceDetail) -> list[Field]:
    declared = detail.declared
    if detail.view.kind is ResourceKind.TOKEN_BUCKET:
        figures = [
            Field(
                "rate",
                "Rate, tokens per second",
                figure_text(declared.rate),
                _help(detail, "rate", f"0 to {RATE_MAX:,.0f}; 0 stops all that needs it."),
                kind="number",
                extra=_numeric(RATE_MAX),
            ),
            Field(
                "burst",
                "Burst, tokens",
                figure_text(declared.burst),
                _help(detail, "burst", "The most that can be taken at once."),
                kind="number",
                extra=_numeric(RATE_MAX),
            ),
        ]
    else:
        figures = [
            Field(
                "permits",
                "Permits",
                figure_text(declared.permits),
                _help(detail, "permits", f"0 to {PERMITS_MAX:,}; 0 stops all that needs it."),
                kind="number",
                extra={**_numeric(PERMITS_MAX), "inputmode": "numeric", "step": "1"},
            )
        ]
    if detail.view.kind is not ResourceKind.TOKEN_BUCKET:
        return figures
    margin = "Part kept back from rate and burst, so that the provider's count is never reached."
    return [
        *figures,
        Field("margin", "Margin, %", percent_text(declared.margin), margin, kind="number", extra=_numeric(99.9)),
    ]


def _lasting_fields() -> list[Field]:
    return [
        Field("lasts", "How long", kind="select", options=LASTS, help="What goes for a while ends by itself."),
        Field(
            "until", "Until, UTC", kind="datetime-local", help="Only with “until the time given”.", extra={"step": "1"}
        ),
        Field("reason", "Reason", help="Required beyond ±50 %, and for 0.", extra={"maxlength": "200"}),
    ]


def _help(detail: ResourceDetail, name: str, bounds: str) -> str:
    declared, force = getattr(detail.declared, name), getattr(detail.view, name)
    if declared == force:
        return f"Now {figure_text(declared)}. {bounds}"
    return f"Declared {figure_text(declared)}, in force {figure_text(force)}. {bounds}"


def _numeric(most: float) -> dict[str, str]:
    return {"inputmode": "decimal", "min": "0", "max": figure_text(most), "step": "any"}


def figure_text(value: float | None) -> str:
    """A figure as a form holds it: no separators, no digits that were never written."""
    return "" if value is None else f"{value:.10g}" if abs(value) < 1e9 else f"{value:.0f}"  # noqa: PLR2004 - digits


def percent_text(part: float | None) -> str:
    """A part as percent, as a form holds it."""
    return "" if part is None else f"{part * _PERCENT:.6g}"


def undo_values(declared: LimitSettings, kind: ResourceKind, version: int) -> dict[str, str]:
    """The form that brings these settings back, unless somebody changed them since `version`."""
    values = {name: figure_text(getattr(declared, name)) for name in figures_of(kind)} | {"version": str(version)}
    if kind is ResourceKind.TOKEN_BUCKET:
        values |= {"margin": percent_text(declared.margin)}
        values |= {cls: percent_text((declared.ceilings or {}).get(cls)) for cls in CLASSES}
    return values


def undo_override_values(before: OverrideSettings, version: int) -> dict[str, str]:
    """The form that brings an override back that another replaced."""
    figures = {"rate": before.rate, "burst": before.burst, "permits": before.permits}
    values = {name: figure_text(value) for name, value in figures.items() if value is not None}
    if before.until is None:
        return {**values, "version": str(version), "lasts": LIFTED}
    until = datetime.fromtimestamp(before.until, tz=UTC).strftime(_UNTIL_FORMAT)
    return {**values, "version": str(version), "lasts": UNTIL, "until": until}
