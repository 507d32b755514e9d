"""Loads the named statements and runs them on Django's connection with parameters bound by the server.

Never builds SQL: a statement is exactly what its file says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, LiteralString, cast

import psycopg
from django.db import connection

SQL_DIR: Final = Path(__file__).parent / "sql"
_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)

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


def cursor() -> psycopg.Cursor[Row]:
    """A psycopg cursor on Django's connection, in its transaction. Parameters are bound by the server."""
    connection.ensure_connection()
    return psycopg.Cursor(cast("psycopg.Connection[Row]", connection.connection))


def run(statement: LiteralString, params: Params = None) -> int:
    """Run a statement and return how many rows it touched."""
    with connection.wrap_database_errors, cursor() as cur:
        cur.execute(statement, params)
        return cur.rowcount


def fetch(statement: LiteralString, params: Params = None) -> list[Row]:
    """Run a statement and return its rows."""
    with connection.wrap_database_errors, cursor() as cur:
        cur.execute(statement, params)
        return cur.fetchall()


def fetch_one(statement: LiteralString, params: Params = None) -> Row | None:
    """Run a statement and return its first row, or None."""
    with connection.wrap_database_errors, cursor() as cur:
        cur.execute(statement, params)
        return cur.fetchone()


def fetch_together(*statements: tuple[LiteralString, Params]) -> list[list[Row]]:
    """Run several statements in order, sent without waiting in between, and return the rows of each.

    A statement that gives no rows (an UPDATE) answers with an empty list.
    """
    connection.ensure_connection()
    raw = cast("psycopg.Connection[Row]", connection.connection)
    with connection.wrap_database_errors, ExitStack() as stack:
        pipe = stack.enter_context(raw.pipeline())
        cursors = [stack.enter_context(psycopg.Cursor(raw)) for _ in statements]
        for cur, (statement, params) in zip(cursors, statements, strict=True):
            cur.execute(statement, params)
        pipe.sync()
        return [cur.fetchall() if cur.description is not None else [] for cur in cursors]


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
