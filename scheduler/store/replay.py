"""Reads what became of every task in a database that was made for one replay."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.policy.types import TaskId
from scheduler.store import queries

_SQL: Final = queries.load("replay.sql")


class Attempted(NamedTuple):
    """A task that was attempted, over all its attempts that were not handed back. Times are Unix seconds."""

    task: TaskId
    ready_at: float
    started_at: float
    finished_at: float
    succeeded: bool
    attempts: int


def load_attempted() -> list[Attempted]:
    """All of them."""
    return [Attempted(*row) for row in queries.fetch(_SQL["attempted_tasks"])]


class Open(NamedTuple):
    """How many tasks have not ended, how many of them are yet to be made ready, and by how much the first is late."""

    number: int
    scheduled: int
    overdue_s: float


def load_open() -> Open:
    """At this moment."""
    row = queries.fetch_one(_SQL["open_tasks"])
    assert row is not None  # noqa: S101 - an aggregate has a row
    return Open(*row)


def forgo_disk() -> None:
    """Let no commit wait for the disk, from the next connection on, in a database that is dropped at the end.

    A disk that ten replays or tests share takes up to a second, and at 20× that is twenty.
    """
    queries.run(_SQL["forgo_disk"])
