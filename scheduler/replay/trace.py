"""Reads a trace: a CSV file of requests with their time, input and output tokens.

Decides which files and rows can be used; the rest is named by line and reason, and then nothing is used at all. Rows
that are out of order are sorted, and how many there were is said. It reads line by line, within bounds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from scheduler.policy.declarations import fault_in_name, fault_in_slug
from scheduler.policy.types import PriorityClass
from scheduler.replay.faults import Faults, ReplayRefused
from scheduler.replay.moments import parse_moment

ROWS_MAX: Final = 1_000_000
LINE_BYTES_MAX: Final = 10_000
TOKENS_MAX: Final = 100_000_000
SPAN_MAX_S: Final = 31 * 86_400.0
SHOWN_CHARS: Final = 40
DELIMITERS: Final = (",", ";", "\t", "|")

COLUMNS: Final = {
    "timestamp": "time",
    "time": "time",
    "arrival": "time",
    "arrival_time": "time",
    "arrived_at": "time",
    "contexttokens": "input",
    "context_tokens": "input",
    "input_tokens": "input",
    "prompt_tokens": "input",
    "inputtokens": "input",
    "generatedtokens": "output",
    "generated_tokens": "output",
    "output_tokens": "output",
    "completion_tokens": "output",
    "outputtokens": "output",
    "tenant": "tenant",
    "class": "class",
    "priority": "class",
    "pool": "pool",
}
NEEDED: Final = ("time", "input", "output")
EXPECTED: Final = "TIMESTAMP, ContextTokens, GeneratedTokens (or time, input_tokens, output_tokens)"


class Request(NamedTuple):
    """One row. `at_s` is seconds after the first row; what the row does not say is None."""

    at_s: float
    input_tokens: int
    output_tokens: int
    tenant: str | None = None
    priority: PriorityClass | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A file that was read. `began_at` is the first row's time; `notes` say what was done to make it usable."""

    name: str
    began_at: float
    requests: tuple[Request, ...]
    notes: tuple[str, ...] = ()

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last arrival."""
        return self.requests[-1].at_s


def read_trace(path: Path, *, rows_max: int = ROWS_MAX) -> Trace:
    """Read a file. Raises ReplayRefused, naming up to 20 rows by line and reason."""
    try:
        with path.open("rb") as file:
            return _read(path.name, file, rows_max)
    except OSError as error:
        raise ReplayRefused(f"{path.name} cannot be read: {error.strerror}.", []) from error


def first_part(trace: Trace, *, from_s: float = 0.0, until_s: float) -> Trace:
    """The requests from `from_s` until `until_s` after the first; the trace then begins with the first of them."""
    kept = [r for r in trace.requests if from_s <= r.at_s < until_s]
    if not kept:
        raise ReplayRefused(f"{trace.name} has no request between {from_s:g} s and {until_s:g} s.", [])
    begin = kept[0].at_s
    note = f"Only {len(kept):,} of {len(trace.requests):,} requests were used: {from_s:g} s to {until_s:g} s."
    moved = tuple(r._replace(at_s=r.at_s - begin) for r in kept)
    return Trace(trace.name, trace.began_at + begin, moved, (*trace.notes, note))


def _read(name: str, file: BinaryIO, rows_max: int) -> Trace:
    faults = Faults()
    lines = _Lines(file, faults)
    header = next(iter(lines), None)
    if header is None:
        faults.refuse_if_any(f"{name} cannot be used:")
        raise ReplayRefused(f"{name} is empty.", [])
    delimiter, columns = _columns(name, header)
    rows = [found for found in _rows(lines, delimiter, columns, faults, rows_max) if found is not None]
    faults.refuse_if_any(f"{name} cannot be used; nothing of it was:")
    if not rows:
        raise ReplayRefused(f"{name} has a header and no row.", [])
    notes = [] if delimiter == "," else [f"Columns are separated by {delimiter!r}."]
    late = sum(b.at_s < a.at_s for a, b in pairwise(rows))
    if late:
        rows.sort(key=lambda r: r.at_s)
        notes.append(f"{late:,} rows were earlier than the row before them; all were sorted by time.")
    began_at = rows[0].at_s
    if rows[-1].at_s - began_at > SPAN_MAX_S:
        days = (rows[-1].at_s - began_at) / 86_400.0
        raise ReplayRefused(f"{name} spans {days:,.0f} days; a replay takes at most {SPAN_MAX_S / 86_400.0:g}.", [])
    return Trace(name, began_at, tuple(r._replace(at_s=r.at_s - began_at) for r in rows), tuple(notes))


class _Lines:
    """The lines of a file as text; those that are none are noted and left out, so that numbers of lines stay right."""

    def __init__(self, file: BinaryIO, faults: Faults) -> None:
        self._file, self._faults = file, faults
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(LINE_BYTES_MAX + 1):
            self.number += 1
            if len(line) > LINE_BYTES_MAX:
                self._faults.add(f"line {self.number}: is longer than {LINE_BYTES_MAX:,} bytes")
                return
            try:
                text = line.decode("utf-8-sig" if self.number == 1 else "utf-8")
            except UnicodeDecodeError:
                self._faults.add(f"line {self.number}: is not UTF-8 text")
                if self._faults.is_full:
                    return
                continue
            if text.strip():
                yield text.rstrip("\r\n")


def _columns(name: str, header: str) -> tuple[str, dict[str, int]]:
    """The delimiter and where each known column is."""
    for delimiter in DELIMITERS:
        titles = [title.strip().strip('"').strip() for title in header.split(delimiter)]
        known = [COLUMNS.get(title.lower()) for title in titles]
        if all(needed in known for needed in NEEDED):
            twice = sorted({each for each in known if each is not None and known.count(each) > 1})
            if twice:
                raise ReplayRefused(f"{name} cannot be used:", [f"line 1: two columns say the {twice[0]}"])
            return delimiter, {each: place for place, each in enumerate(known) if each is not None}
    shown = header if len(header) <= 2 * SHOWN_CHARS else header[: 2 * SHOWN_CHARS] + "…"
    raise ReplayRefused(f"{name} cannot be used:", [f"line 1: needs the columns {EXPECTED}; it has: {shown}"])


def _rows(
    lines: _Lines, delimiter: str, columns: dict[str, int], faults: Faults, rows_max: int
) -> Iterator[Request | None]:
    width = max(columns.values()) + 1
    for count, text in enumerate(lines, 1):
        if faults.is_full:
            return
        if count > rows_max:
            faults.add(f"line {lines.number}: there are more than {rows_max:,} rows; replay a part of the file")
            return
        try:
            # One line is one row: a quote that is not closed cannot swallow those that follow.
            fields = next(csv.reader([text], delimiter=delimiter, strict=True))
            if len(fields) < width:
                raise ValueError(f"has {len(fields)} fields where the header has at least {width}")  # noqa: TRY301 - told with the rest
            yield _row(fields, columns)
        except ValueError as error:
            faults.add(f"line {lines.number}: {error}")
        except csv.Error:
            faults.add(f"line {lines.number}: has a quote that is not closed, or text after one that is")


def _row(fields: list[str], columns: dict[str, int]) -> Request:
    def said(column: str) -> str:
        return fields[columns[column]].strip() if column in columns else ""

    try:
        moment = parse_moment(said("time"))
    except ValueError as error:
        raise ValueError(f"{_shown(said('time'))} {error}") from error
    return Request(
        moment,
        _tokens(said("input"), "input"),
        _tokens(said("output"), "output"),
        _tenant(said("tenant")),
        _class(said("class")),
        _pool(said("pool")),
    )


def _tokens(text: str, what: str) -> int:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{_shown(text)} is no number of {what} tokens") from None
    if value != value or value < 0.0 or value > TOKENS_MAX or value != int(value):  # noqa: PLR0124 - NaN is not itself
        raise ValueError(f"{_shown(text)} is no number of {what} tokens: it must be whole, from 0 to {TOKENS_MAX:,}")
    return int(value)


def _tenant(text: str) -> str | None:
    if text and fault_in_slug(text) is not None:
        raise ValueError(f"{_shown(text)} is no tenant: use lower-case letters, digits, _ and -")
    return text or None


def _class(text: str) -> PriorityClass | None:
    if not text:
        return None
    try:
        return PriorityClass[text.upper()]
    except KeyError:
        raise ValueError(f"{_shown(text)} is no class: there are critical, high, normal and low") from None


def _pool(text: str) -> str | None:
    if text and fault_in_name(text) is not None:
        raise ValueError(f"{_shown(text)} is no name of a pool")
    return text or None


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")
