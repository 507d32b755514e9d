"""Reads the form that edits a pool's size and targets, and draws it again with what is wrong with it.

It parses text into figures. Whether the figures are allowed is for the services to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Final

from django.http import QueryDict

from scheduler.errors import FieldError
from scheduler.policy.bold import is_bold
from scheduler.policy.declarations import SLOTS_MAX, PoolSettings
from scheduler.policy.types import PriorityClass
from scheduler.reads.pools import PoolDetail
from scheduler.web.edit_sheet import SettingRow
from scheduler.web.fields import Field

CLASSES: Final = tuple(p.label for p in PriorityClass)
SIZES: Final = (("slots", "slots", "Slots"), ("min", "slots_min", "Fewest slots"), ("max", "slots_max", "Most slots"))
"""The name in the form, in `PoolSettings`, and on the page."""


@dataclass(frozen=True, slots=True)
class WantedPool:
    """What a form asks for: other settings by their names in `PoolSettings`. `faults` say what is wrong."""

    changes: Mapping[str, Any]
    reason: str
    faults: tuple[FieldError, ...]


def read_pool_form(posted: QueryDict, detail: PoolDetail) -> WantedPool:
    """What the form asks for, compared with what is declared. A field that is missing asks for nothing."""
    faults: list[FieldError] = []
    settings = detail.settings
    given: dict[str, Any] = {}
    for name, setting, _ in SIZES:
        if name in posted:
            given[setting] = _whole(posted.get(name, ""), name, faults)
    if any(cls in posted for cls in CLASSES):
        given["slo"] = _targets(posted, faults)
    changes = {name: value for name, value in given.items() if value is not None or name == "slo"}
    changes = {name: value for name, value in changes.items() if value != _plain(settings, name)}
    reason = posted.get("reason", "").strip()
    slots = changes.get("slots")
    if slots is not None and slots >= 0 and not reason and not faults and is_bold(settings.slots, slots):
        faults.append(FieldError(("reason",), f"Say why: {slots} slots instead of {settings.slots} is a large change."))
    return WantedPool(changes, reason, tuple(faults))


def _plain(settings: PoolSettings, name: str) -> Any:
    value = getattr(settings, name)
    return (dict(value) if value else None) if name == "slo" else value


def _whole(text: str, name: str, faults: list[FieldError]) -> int | None:
    try:
        return int(text.strip().replace(",", ""))
    except ValueError:
        faults.append(FieldError((name,), "Write a whole number, for example 40."))
        return None


def _targets(posted: QueryDict, faults: list[FieldError]) -> dict[str, float] | None:
    found = {}
    for cls in CLASSES:
        text = posted.get(cls, "").strip()
        if not text:
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = float("nan")
        if isfinite(seconds):
            found[cls] = seconds
        else:
            faults.append(FieldError((cls,), "Write seconds, for example 5."))
    return found or None


def pool_fields(detail: PoolDetail, posted: QueryDict | None = None) -> list[Field]:
    """The fields with what is declared in them, or with what was posted."""
    s = detail.settings
    extra = {"inputmode": "numeric", "min": "0", "max": str(SLOTS_MAX), "step": "1"}
    slots = f"Now {s.slots}; {detail.running} busy."
    if s.autoscale is not None:
        slots += " The autoscaler moves it between the two others."
    helps = {"slots": slots, "min": f"Now {s.slots_min}.", "max": f"Now {s.slots_max}."}
    fields = [
        Field(name, label, str(getattr(s, setting)), helps[name], kind="number", required=True, extra=extra)
        for name, setting, label in SIZES
    ]
    fields.append(Field("reason", "Reason", help="Required beyond ±50 %, and for 0.", extra={"maxlength": "200"}))
    return _filled(fields, posted)


def target_fields(detail: PoolDetail, posted: QueryDict | None = None) -> list[Field]:
    """One field per class: the seconds that its tasks may wait."""
    slo = detail.settings.slo or {}
    extra = {"inputmode": "decimal", "min": "0", "step": "any"}
    fields = [
        Field(cls, f"{cls.capitalize()}, s", seconds_text(slo.get(cls)), kind="number", extra=extra) for cls in CLASSES
    ]
    return _filled(fields, posted)


def _filled(fields: list[Field], posted: QueryDict | None) -> list[Field]:
    return fields if posted is None else [replace(each, value=posted.get(each.name, each.value)) for each in fields]


def pool_rows(detail: PoolDetail, posted: QueryDict | None) -> list[SettingRow]:
    """Every setting that the form has, as declared and as posted."""
    values = pool_values(detail.settings)
    labels = {name: label for name, _, label in SIZES} | {cls: f"Target of {cls}, s" for cls in CLASSES}
    rows = []
    for name, label in labels.items():
        declared = values[name]
        wanted = declared if posted is None else posted.get(name, declared).strip()
        if declared or wanted:
            rows.append(SettingRow(label, declared or "none", declared or "none", wanted or "none"))
    return rows


def pool_values(settings: PoolSettings) -> dict[str, str]:
    """The form that brings these settings back."""
    slo = settings.slo or {}
    sizes = {name: str(getattr(settings, setting)) for name, setting, _ in SIZES}
    return sizes | {cls: seconds_text(slo.get(cls)) for cls in CLASSES}


def seconds_text(seconds: float | None) -> str:
    """Seconds as a form holds them."""
    return "" if seconds is None else f"{seconds:.10g}"
