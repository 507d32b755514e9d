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


def count_open() -> int:
    """How many tasks have not come to their end."""
    (number,) = queries.fetch_one(_SQL["open_tasks"]) or (0,)
    return int(number)
