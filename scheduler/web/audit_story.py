"""Decides how to tell what somebody changed: in words, value by value, and where the changed thing can be looked at.

Rows of the audit go in, lines for a template come out. Nothing here is markup; the template escapes it all. What a task
carries is for those who may see payloads, here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from scheduler.live import wording
from scheduler.reads.audit import AuditRow
from scheduler.web import times
from scheduler.web.access import VIEW_AUDIT, VIEW_PAYLOAD, may

CHANGES_SHOWN_MAX: Final = 4
VALUE_CHARS_MAX: Final = 80
_EPOCH_2001_S: Final = 1e9
_MONEY: Final = frozenset({"limit", "success_target", "top_up"})
_PRICES: Final = frozenset({"input", "output", "cache_read", "cache_write", "cache_write_1h"})
_CARRIED: Final = "payload"
_TIMES: Final = frozenset({"until", "expires_at", "top_up_until", "valid_from", "valid_to"})
_DOORS: Final = {"ui": "console", "api": "API", "admin": "administration", "system": "by itself"}
_DONE: Final = {
    "add": "added",
    "cancel": "cancelled",
    "disable": "disabled",
    "discard": "discarded",
    "drain": "drained",
    "edit": "edited",
    "end_top_up": "ended the top-up of",
    "finish": "finished",
    "forget": "forgot",
    "kill": "killed",
    "lift": "lifted the stop of",
    "lift_override": "lifted the override of",
    "override": "overrode",
    "password": "gave a new password to",
    "pause": "paused",
    "raise": "stopped",
    "remove": "removed",
    "repair": "repaired",
    "replay": "replayed",
    "reset_breaker": "closed the breaker of",
    "reset_factor": "restored the pace of",
    "restore": "restored",
    "resume": "resumed",
    "revoke": "revoked",
    "rotate": "gave a new secret to",
    "run": "ran",
    "save": "saved",
    "scale": "scaled",
    "test": "tested",
    "top_up": "topped up",
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


def panel(request: HttpRequest, subject: str, rows: Sequence[AuditRow]) -> dict[str, Any]:
    """What ``ops/_audit.html`` is given: what was done lately to one thing, for those who may read the audit."""
    shown = may(request, VIEW_AUDIT)
    entries = [entry_of(seen_by(request, row)) for row in rows] if shown else []
    return {"may_audit": shown, "audit_subject": subject, "audit": entries}


def seen_by(request: HttpRequest, row: AuditRow) -> AuditRow:
    """The event as this visitor may see it."""
    if may(request, VIEW_PAYLOAD):
        return row
    return replace(row, before=_bare(row.before), after=_bare(row.after))


def _bare(value: Any) -> Any:
    """Without what tasks carry, wherever it stands."""
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    hidden = f"for those with the permission {VIEW_PAYLOAD}"
    return {name: hidden if name == _CARRIED else _bare(each) for name, each in value.items()}


def entry_of(row: AuditRow, *, whole: bool = False) -> Entry:
    """The event in words; unless it is wanted whole, only its first changes, without what was left empty."""
    changes = changes_of(row, chars_max=None if whole else VALUE_CHARS_MAX, empty=whole)
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


def changes_of(row: AuditRow, *, chars_max: int | None, empty: bool = True) -> list[Change]:
    """Value by value, only what differs; what is inside a value that holds several is named with dots.

    Without `empty`, what was not there before and says nothing now is left out.
    """
    before, after = _flat(row.before or {}), _flat(row.after or {})
    names = [*after, *(name for name in before if name not in after)]
    return [
        Change(
            _label(name),
            _text(name, before[name], chars_max) if name in before else None,
            _text(name, after[name], chars_max) if name in after else None,
        )
        for name in names
        if name not in after or (before[name] != after[name] if name in before else empty or _says(after[name]))
    ]


def _says(value: Any) -> bool:
    return value is not None and value is not False and value not in ("", [], {})


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
        return wording.dollars_exact(value)
    if isinstance(value, int) and name in _PRICES:
        return f"{wording.dollars_exact(value)} per million"
    if name in _TIMES and value > _EPOCH_2001_S:
        return times.day_and_clock(value)
    if name.endswith("_s"):
        return f"{value:g} s"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
