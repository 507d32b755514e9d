"""Appends to the audit and reads it. Nothing here changes what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from scheduler.store import queries

_SQL: Final = queries.load("audit.sql")

SOURCES: Final = ("ui", "api", "admin", "system")
"""Through which door a change came."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """Who changed what, and why; `before` and `after` hold what changed. `address` and `request_id`: where from."""

    actor: str
    source: str
    action: str
    subject: str
    reason: str = ""
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    address: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An event as it is kept; `at` is Unix seconds."""

    id: int
    at: float
    actor: str
    source: str
    action: str
    subject: str
    reason: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    address: str | None
    request_id: str | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events: all for None. `since` and `until` are Unix seconds, of which `until` is not part."""

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    source: str | None = None
    since: float | None = None
    until: float | None = None


def add(event: AuditEvent) -> None:
    """Append to the audit."""
    params = {
        "actor": event.actor,
        "source": event.source,
        "action": event.action,
        "subject": event.subject,
        "reason": event.reason,
        "before": _json(event.before),
        "after": _json(event.after),
        "address": event.address,
        "request_id": event.request_id,
    }
    queries.run(_SQL["add_audit_event"], params)


def load_older(wanted: AuditFilter, *, cursor: int | None, rows_max: int) -> list[AuditRow]:
    """Events before this one, newest first; the newest for None."""
    params = {**asdict(wanted), "cursor": cursor, "rows_max": rows_max}
    return [_row(row) for row in queries.fetch_anew(_SQL["older_audit_events"], params)]


def load_newer(wanted: AuditFilter, *, cursor: int, rows_max: int) -> list[AuditRow]:
    """Events after this one, those next to it, newest first."""
    params = {**asdict(wanted), "cursor": cursor, "rows_max": rows_max}
    return [_row(row) for row in reversed(queries.fetch_anew(_SQL["newer_audit_events"], params))]


def find(event: int) -> AuditRow | None:
    """One event."""
    row = queries.fetch_one(_SQL["find_audit_event"], {"event": event})
    return None if row is None else _row(row)


def _row(row: queries.Row) -> AuditRow:
    event, at, actor, source, action, subject, reason, before, after, address, request_id = row
    told = (actor, source, action, subject, reason)
    return AuditRow(event, at, *told, _read(before), _read(after), address, request_id)


def _read(text: str | None) -> dict[str, Any] | None:
    value = None if text is None else orjson.loads(text)
    return value if isinstance(value, dict) or value is None else {"value": value}


def _json(value: Mapping[str, object] | None) -> str | None:
    return None if value is None else orjson.dumps(dict(value)).decode()
