"""Empties tables for measurements, in a database made for them."""

from __future__ import annotations

from typing import Final

from scheduler.store import queries

_SQL: Final = queries.load("bench.sql")


def empty_tables() -> None:
    """Remove all work and its history."""
    queries.run(_SQL["empty_tables"])


def leave_in_bucket(name: str, level: float) -> None:
    """Leave so much in a bucket, and let it refill from now on by next to nothing."""
    queries.run(_SQL["leave_in_bucket"], {"name": name, "level": level})


def settle_down() -> None:
    """Refresh statistics and clear dead rows."""
    queries.run(_SQL["settle_down"])


def own_process() -> int:
    """The process id of the server's side of this connection."""
    row = queries.fetch_one(_SQL["own_process"])
    assert row is not None  # noqa: S101 - a SELECT without FROM has a row
    return int(row[0])
