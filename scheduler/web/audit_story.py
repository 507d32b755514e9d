"""Decides how to tell what somebody changed: in words, value by value, and where the changed thing can be looked at.

Pure: rows of the audit go in, lines for a template come out. Nothing here is markup; the template escapes it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from django.urls import NoReverseMatch, reverse

from scheduler.live import wording
from scheduler.policy.money import format_usd
from scheduler.reads.audit import AuditRow
from scheduler.web import times

CHANGES_SHOWN_MAX: Final = 4
VALUE_CHARS_MAX: Final = 80
_EPOCH_2001_S: Final = 1e9
_MONEY: Final = frozenset({"limit", "success_target", "top_up"})
_TIMES: Final = frozenset({"until", "expires_at", "top_up_until"})
_DOORS: Final = {"ui": "console", "api": "API", "admin": "administration", "system": "the system itself"}
_DONE: Final = {
    "add": "added",
    "cancel": "cancelled",
    "disable": "disabled",
    "drain": "drained",
    "edit": "edited",
    "forget": "forgot",
    "kill": "killed",
    "lift": "lifted the stop of",
    "lift_override": "lifted the override of",
    "override": "overrode",
    "pause": "paused",
    "raise": "stopped",
    "remove": "removed",
    "repair": "repaired",
    "replay": "replayed",
    "reset_breaker": "closed the breaker of",
    "reset_factor": "restored the pace of",
    "resume": "resumed",
    "revoke": "revoked",
    "rotate": "gave a new secret to",
    "run": "ran",
    "save": "saved",
    "test": "tested",
}
_PAGES: Final = {
    "pool": ("ops:pool", "name"),
    "resource": ("ops:resource", "name"),
    "tenant": ("ops:tenant", "slug"),
    "task": ("ops:task", "task_id"),
    "run": ("ops:run", "run_id"),
    "schedule": ("ops:schedule", "schedule_id"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One value: `was` and `now` are None where there was none before, or is none any more."""

    name: str
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """An event for a row of the list, or for its own page."""

    row: AuditRow
    says: str
    kind: str
    name: str
    url: str
    door: str
    at: str
    machine: str
    changes: list[Change]
    left: int


def door_of(source: str) -> str:
    """Through which door a change came, for people."""
    return _DOORS.get(source, source)


def entry_of(row: AuditRow, *, whole: bool = False) -> Entry:
    """The event in words; only its first changes unless it is wanted whole."""
    changes = changes_of(row, chars_max=None if whole else VALUE_CHARS_MAX)
    shown = changes if whole else changes[:CHANGES_SHOWN_MAX]
    kind, _, name = row.subject.partition(":")
    return Entry(
        row=row,
        says=says_of(row.action),
        kind=kind.replace("_", " "),
        name=name,
        url=url_of(row.subject),
        door=door_of(row.source),
        at=times.day_and_clock(row.at),
        machine=wording.machine(row.at),
        changes=shown,
        left=len(changes) - len(shown),
    )


def says_of(action: str) -> str:
    """``pool.lift_override`` as ``lifted the override of``: the thing itself is said beside it."""
    verb = action.partition(".")[2]
    return _DONE.get(verb, verb.replace("_", " ") or action)


def url_of(subject: str) -> str:
    """Where the changed thing can be looked at; empty where there is no page for it."""
    kind, _, name = subject.partition(":")
    route, part = _PAGES.get(kind, ("", ""))
    if not route or not name:
        return ""
    try:
        return reverse(route, kwargs={part: int(name) if part.endswith("_id") else name})
    except (NoReverseMatch, ValueError):
        return ""


def changes_of(row: AuditRow, *, chars_max: int | None) -> list[Change]:
    """Value by value, only what differs; what is inside a value that holds several is named with dots."""
    before, after = _flat(row.before or {}), _flat(row.after or {})
    names = [*after, *(name for name in before if name not in after)]
    return [
        Change(
            _label(name),
            _text(name, before[name], chars_max) if name in before else None,
            _text(name, after[name], chars_max) if name in after else None,
        )
        for name in names
        if name not in before or name not in after or before[name] != after[name]
    ]


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _label(name: str) -> str:
    last = name.rpartition(".")[2]
    for suffix in ("_nano", "_s"):
        if last.endswith(suffix):
            name = name.removesuffix(suffix)
    return name.replace("_", " ")


def _text(name: str, value: Any, chars_max: int | None) -> str:
    text = _plain(name.rpartition(".")[2], value)
    return text if chars_max is None or len(text) <= chars_max else f"{text[:chars_max]}…"


def _plain(name: str, value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _number(name, value)
        case str():
            return value or "empty"
        case list() if all(isinstance(each, str | int | float) for each in value):
            return ", ".join(str(each) for each in value) or "none"
        case _:
            return orjson.dumps(value).decode()


def _number(name: str, value: float) -> str:
    if isinstance(value, int) and (name.endswith("_nano") or name in _MONEY):
        return f"${format_usd(value)}"
    if name in _TIMES and value > _EPOCH_2001_S:
        return times.day_and_clock(value)
    if name.endswith("_s"):
        return f"{value:g} s"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
