"""Writes the audit as a CSV file, piece by piece: a file of any length costs no more memory than a page.

A spreadsheet must not take what somebody typed for a formula: a cell that begins like one gets an apostrophe.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

import orjson
from asgiref.sync import sync_to_async

from scheduler.live import wording
from scheduler.reads.audit import EXPORT_ROWS_MAX, AuditRow

HEADINGS: Final = (
    "id",
    "time",
    "actor",
    "source",
    "action",
    "subject",
    "reason",
    "before",
    "after",
    "address",
    "request_id",
)
_LIKE_A_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def cell(text: str) -> str:
    """The text as a cell that no spreadsheet calculates."""
    return f"'{text}" if text.startswith(_LIKE_A_FORMULA) else text


def written(stretches: Iterator[list[AuditRow]]) -> Iterator[str]:
    """The file in pieces, its headings first; a file that had to end early says so in its last line."""
    yield _lines([HEADINGS])
    count = 0
    for rows in stretches:
        count += len(rows)
        yield _lines(_cells(row) for row in rows)
    if count >= EXPORT_ROWS_MAX:
        yield _lines(
            [["", "", f"This file ends after {EXPORT_ROWS_MAX:,} entries; ask for earlier ones by their time."]]
        )


async def without_waiting(pieces: Iterator[str]) -> AsyncIterator[str]:
    """The same for a server whose event loop must not wait for the database."""
    take = sync_to_async(lambda: next(pieces, None))
    while (piece := await take()) is not None:
        yield piece


def _cells(row: AuditRow) -> list[str]:
    texts = (row.actor, row.source, row.action, row.subject, row.reason, _json(row.before), _json(row.after))
    origin = (row.address or "", row.request_id or "")
    return [str(row.id), wording.machine(row.at), *(cell(text) for text in (*texts, *origin))]


def _json(value: dict[str, object] | None) -> str:
    return "" if value is None else orjson.dumps(value).decode()


def _lines(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
