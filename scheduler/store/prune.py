"""Deletes what ended long ago, a stretch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from scheduler.policy.graph import Links
from scheduler.policy.types import TaskId
from scheduler.store import queries

_SQL: Final = queries.load("prune.sql")


class Stretch(NamedTuple):
    """Tasks that stand together by id: the last of them, and those that may go."""

    last: TaskId
    old: list[TaskId]


class Old(NamedTuple):
    """How many tasks and groups and audit events are past their time."""

    tasks: int
    groups: int
    audit_events: int


def find_old(*, after: int, before: float, rows_max: int) -> Stretch | None:
    """The next stretch beyond the id `after`, with those that ended before a time; None at the end."""
    params = {"after": after, "before": before, "rows_max": rows_max, "children": int(Links.CHILDREN)}
    row = queries.fetch_one(_SQL["find_old_tasks"], params)
    if row is None or row[0] is None:
        return None
    return Stretch(TaskId(row[0]), [] if row[1] is None else [TaskId(task) for task in orjson.loads(row[1])])


def delete_tasks(tasks: Sequence[TaskId], *, before: float) -> int:
    """Delete these with all that is theirs, as far as they are still old and nobody holds them; returns how many."""
    row = queries.fetch_one(_SQL["delete_tasks"], {"tasks": queries.array(tasks), "before": before})
    return 0 if row is None else int(row[0])


def delete_groups(*, before: float, rows_max: int) -> int:
    """Delete groups that were made before a time and have no members; returns how many."""
    return queries.run(_SQL["delete_groups"], {"before": before, "rows_max": rows_max})


def delete_runs(*, after: int, before: float, rows_max: int) -> tuple[int, int] | None:
    """Delete of the next stretch of runs beyond the id `after` those that ended before a time and have no steps left.

    The last id of the stretch and how many went; None at the end.
    """
    row = queries.fetch_one(_SQL["delete_runs"], {"after": after, "before": before, "rows_max": rows_max})
    return None if row is None or row[0] is None else (int(row[0]), int(row[1]))


def delete_audit(*, before: float, rows_max: int) -> int:
    """Delete audit events from before a time; returns how many."""
    return queries.run(_SQL["delete_audit"], {"before": before, "rows_max": rows_max})


def count_old(*, before: float, audit_before: float) -> Old:
    """What is past its time."""
    row = queries.fetch_one(_SQL["count_old"], {"before": before, "audit_before": audit_before})
    assert row is not None  # noqa: S101 - a SELECT of scalars gives a row
    return Old(*row)
