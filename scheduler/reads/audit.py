"""The audit as people read it: a page at a time, newest first, by who, what, to what, through which door and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.reads.turning import turn
from scheduler.store import audit as store
from scheduler.store.audit import SOURCES, AuditFilter, AuditRow

__all__ = ["SOURCES", "AuditFilter", "AuditPage", "AuditRow", "all_events", "events_of", "find_event", "list_events"]

ID_MAX: Final = 2**63 - 1
PAGE_MAX: Final = 200
CHUNK_ROWS: Final = 1_000
BESIDE_MAX: Final = 20
"""Events shown on the page of the thing that they changed."""
EXPORT_ROWS_MAX: Final = 1_000_000
_CURSOR: Final = re.compile(r"(-?)([1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Events, newest first, and the cursors of the pages beside it, None where there is none."""

    events: tuple[AuditRow, ...]
    older: str | None
    newer: str | None


def list_events(wanted: AuditFilter, *, cursor: str | None, rows_max: int) -> AuditPage:
    """A page of the audit. A cursor is an event's id: what is older than it, or with a minus what is newer.

    Raises Refused for a filter or cursor that means nothing.
    """
    _check(wanted)
    newer, event = _read(cursor)
    if newer and event is not None:
        rows = store.load_newer(wanted, cursor=event, rows_max=rows_max + 1)
    else:
        rows = store.load_older(wanted, cursor=event, rows_max=rows_max + 1)
    page = turn(rows, rows_max=rows_max, back=newer and event is not None, first=event is None)
    return AuditPage(
        page.rows,
        older=None if page.older is None else str(page.older.id),
        newer=None if page.newer is None else f"-{page.newer.id}",
    )


def all_events(wanted: AuditFilter) -> Iterator[list[AuditRow]]:
    """Every event in stretches, newest first, at most `EXPORT_ROWS_MAX` altogether. Raises Refused at once."""
    _check(wanted)
    return _stretches(wanted)


def _stretches(wanted: AuditFilter) -> Iterator[list[AuditRow]]:
    cursor: int | None = None
    for _ in range(EXPORT_ROWS_MAX // CHUNK_ROWS):
        rows = store.load_older(wanted, cursor=cursor, rows_max=CHUNK_ROWS)
        if rows:
            yield rows
        if len(rows) < CHUNK_ROWS:
            return
        cursor = rows[-1].id


def events_of(subject: str) -> list[AuditRow]:
    """What was done lately to one thing, newest first."""
    return store.load_older(AuditFilter(subject=subject), cursor=None, rows_max=BESIDE_MAX)


def find_event(event: int) -> AuditRow:
    """One event. Raises NotFound."""
    found = store.find(event) if 0 < event <= ID_MAX else None
    if found is None:
        raise NotFound(f"There is no entry {event} in the audit.", code="unknown_event")
    return found


def _check(wanted: AuditFilter) -> None:
    faults = [
        FieldError((name,), "This text holds a character that cannot be kept.")
        for name in ("actor", "action", "subject")
        if "\x00" in (getattr(wanted, name) or "")
    ]
    if wanted.source is not None and wanted.source not in SOURCES:
        faults.append(FieldError(("source",), f"A source is one of {', '.join(SOURCES)}."))
    if wanted.since is not None and wanted.until is not None and wanted.since >= wanted.until:
        faults.append(FieldError(("until",), "Give an end that is after the beginning."))
    if faults:
        raise Refused(" ".join(each.msg for each in faults), code="bad_filter", errors=tuple(faults))


def _read(cursor: str | None) -> tuple[bool, int | None]:
    if cursor is None:
        return False, None
    match = _CURSOR.fullmatch(cursor)
    if match is None or int(match[2]) > ID_MAX:
        detail = "This cursor is not one that a list gave out; begin again without it."
        raise Refused(detail, code="bad_cursor", errors=(FieldError(("cursor",), detail),))
    return bool(match[1]), int(match[2])
