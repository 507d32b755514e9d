"""Empties tables for measurements, in a database made for them."""

from __future__ import annotations

from collections.abc import Mapping
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


_CROWD: Final = queries.load("bench_console.sql")


def add_demands() -> None:
    """Add a demand of each limit alone."""
    queries.run(_CROWD["add_demands"])


def add_crowd_tasks(sizes: Mapping[str, int], *, first: int, last: int) -> None:
    """Add the tasks of these numbers, with what belongs to them."""
    names = ("dead", "done", "waiting", "groups")
    queries.run(_CROWD["add_tasks"], {name: sizes[name] for name in names} | {"first": first, "last": last})


def add_crowd_records(sizes: Mapping[str, int], *, last_task: int) -> None:
    """Add predictions and the audit; later tasks come behind those added."""
    queries.fetch(_CROWD["go_on_behind"], {"last": last_task})
    for name in ("predictions", "audit"):
        queries.run(_CROWD[f"add_{name}"], {name: sizes[name]})


def refresh_statistics() -> None:
    """Refresh the statistics of every table, as a database that has lived for a day has them."""
    queries.run(_CROWD["refresh_statistics"])


def count_transactions() -> int:
    """Transactions that this database has ended so far. A statement outside any is one of its own."""
    queries.run(_CROWD["look_anew"])
    ((number,),) = queries.fetch(_CROWD["count_transactions"])
    return int(number)
