"""Writes and reads samples of pools and limits."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("history.sql")


class Sample(NamedTuple):
    """A pool or limit at a moment (Unix seconds). `used` is a fraction; `oldest_s` None: nothing waited."""

    at: float
    waiting: int
    used: float
    oldest_s: float | None


def sample(*, subjects_max: int) -> int:
    """Keep the newest picture; returns how many samples that made."""
    return queries.run(_SQL["sample_history"], {"subjects_max": subjects_max})


def forget(*, keep_s: float) -> int:
    """Remove what is older."""
    return queries.run(_SQL["forget_history"], {"keep_s": keep_s})


def load(kind: str, name: str, *, since: float, rows_max: int) -> list[Sample]:
    """Samples of one pool or limit, oldest first."""
    params = {"kind": kind, "name": name, "since": since, "rows_max": rows_max}
    return [Sample(*row) for row in queries.fetch(_SQL["read_history"], params)]
