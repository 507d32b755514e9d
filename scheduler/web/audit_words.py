"""Decides how a line of the audit reads on the page of the thing that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from django.http import HttpRequest

from scheduler.reads.run_pages import AuditLine
from scheduler.web.access import VIEW_AUDIT
from scheduler.web.task_story import When, when

CHANGES_MAX: Final = 6
VALUE_CHARS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class AuditWords:
    """Who did what, when, why, and what changed."""

    when: When
    says: str
    reason: str
    changes: str


def panel(request: HttpRequest, subject: str, lines: Sequence[AuditLine]) -> dict[str, Any]:
    """What ``ops/_audit.html`` is given: the lines, for those who may read the audit."""
    may = request.user.has_perm(VIEW_AUDIT)
    return {"may_audit": may, "audit_subject": subject, "audit": [line_of(line) for line in lines] if may else []}


def line_of(line: AuditLine) -> AuditWords:
    """The line in words."""
    verb = line.action.replace(".", ": ").replace("_", " ")
    return AuditWords(when(line.at), f"{line.actor} · {verb}", line.reason, _changes(line.before, line.after))


def _changes(before: str | None, after: str | None) -> str:
    """``max_width: 8 → 20``, of the names that stand after."""
    old, new = _values(before), _values(after)
    said = [
        f"{name}: {_said(old[name])} → {_said(value)}" if name in old else f"{name}: {_said(value)}"
        for name, value in new.items()
        if old.get(name, _NOTHING) != value
    ]
    rest = f" and {len(said) - CHANGES_MAX} more" if len(said) > CHANGES_MAX else ""
    return ", ".join(said[:CHANGES_MAX]) + rest


_NOTHING: Final = object()


def _values(text: str | None) -> dict[str, Any]:
    found = None if text is None else orjson.loads(text)
    return found if isinstance(found, dict) else {}


def _said(value: object) -> str:
    if isinstance(value, dict | list):
        return "…"  # may be what a task carries, which not everybody may see
    text = "none" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}…"
