"""Loads the named statements and runs them on Django's connection with parameters bound by the server.

Never builds SQL: a statement is exactly what its file says, or several that `store/asking.py` put side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, LiteralString, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

SQL_DIR: Final = Path(__file__).parent / "sql"
_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|s|%)")

Row = tuple[Any, ...]
Params = Mapping[str, object] | Sequence[object] | None


def load(file_name: str) -> dict[str, LiteralString]:
    """The statements of one file by name. Raises ValueError when a name stands twice."""
    parts = _NAME.split((SQL_DIR / file_name).read_text(encoding="utf-8"))
    names, bodies = parts[1::2], parts[2::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{file_name}: a statement name stands twice")
    # The files are part of the package: their text is as literal as a string in the source.
    return {name: cast("LiteralString", body.strip()) for name, body in zip(names, bodies, strict=True)}


@lru_cache(maxsize=2_000)
def _numbered(statement: LiteralString) -> tuple[LiteralString, tuple[str, ...]]:
    """The statement with its parameters numbered as the server wants them, and their names in that order.

    The driver would do the same each time: it remembers short statements alone, and those of plans are long.
    """
    places: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        # Those without a name come in the order in which they stand.
        name = found[1] or str(len(places))
        return f"${places.setdefault(name, len(places) + 1)}"

    # What is put in are numbers: the text is as literal as before.
    return _PLACEHOLDER.sub(number, statement), tuple(places)


def renamed(statement: LiteralString, prefix: str) -> LiteralString:
    """The statement as a part of another: its named parameters have a prefix, and no semicolon ends it."""

    def rename(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f"%({prefix}{found[1]})s"

    return _PLACEHOLDER.sub(rename, statement).rstrip().removesuffix(";")


def _execute(
    wrapper: BaseDatabaseWrapper,
    statement: LiteralString,
    params: Params,
    *,
    prepare: bool | None = None,
    binary: bool | None = None,
) -> psycopg.Cursor[Row]:
    if params is None:
        return _cursor(wrapper).execute(statement, prepare=prepare, binary=binary)
    text, names = _numbered(statement)
    values = [params[name] for name in names] if isinstance(params, Mapping) else params
    return _cursor(wrapper).execute(text, values, prepare=prepare, binary=binary)


def _cursor(wrapper: BaseDatabaseWrapper) -> psycopg.RawCursor[Row]:
    """A psycopg cursor on Django's connection, in its transaction; parameters are bound by the server.

    One is kept with each connection: making it anew costs as much as a short statement. A connection belongs to one
    thread, and every function here reads its result before it returns.
    """
    if wrapper.connection is None:
        wrapper.ensure_connection()
    raw = wrapper.connection
    kept: psycopg.RawCursor[Row] | None = getattr(raw, "cronoq_cursor", None)
    if kept is None:
        kept = psycopg.RawCursor(cast("psycopg.Connection[Row]", raw))
        raw.cronoq_cursor = kept
    return kept


def run(statement: LiteralString, params: Params = None) -> int:
    """Run a statement and return how many rows it touched."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    with wrapper.wrap_database_errors:
        return _execute(wrapper, statement, params).rowcount


def fetch(statement: LiteralString, params: Params = None) -> list[Row]:
    """Run a statement and return its rows."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    with wrapper.wrap_database_errors:
        return _execute(wrapper, statement, params).fetchall()


def fetch_anew(statement: LiteralString, params: Params = None) -> list[Row]:
    """The same, planned for these values alone.

    For statements with filters that may be left out (`%(x)s IS NULL OR …`): a plan for any values, which the server
    falls back to for a prepared statement, could use no index for them.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    with wrapper.wrap_database_errors:
        return _execute(wrapper, statement, params, prepare=False).fetchall()


def fetch_records(statement: LiteralString, params: Params = None) -> list[list[Row]]:
    """The only row of a statement whose columns are arrays of records; in binary their fields keep their types."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    with wrapper.wrap_database_errors:
        (row,) = _execute(wrapper, statement, params, binary=True).fetchall()
    return list(row)


def fetch_one(statement: LiteralString, params: Params = None) -> Row | None:
    """Run a statement and return its first row, or None."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    with wrapper.wrap_database_errors:
        return _execute(wrapper, statement, params).fetchone()


_NULL: Final = "NULL"


def array(values: Iterable[float | int | bool | str | None]) -> str:
    """The text of a one-dimensional PostgreSQL array of numbers, booleans, UUIDs or other plain words.

    Five times as fast as handing the list to the driver, which matters for arrays of hundreds in every plan. The
    statement gives the type, as in `%(tasks)s::bigint[]`.
    """
    return "{" + ",".join([_NULL if v is None else str(v) for v in values]) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """The same for texts that may hold anything."""
    return "{" + ",".join([_NULL if v is None else _quoted(v) for v in values]) + "}"


def _quoted(value: str) -> str:
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    return '"' + value.replace('"', '\\"') + '"'
