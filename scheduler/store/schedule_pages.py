"""Reads what the console shows of schedules: lists with their last result, and one's history."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from scheduler.policy.schedules import Fate
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.store import queries
from scheduler.store.schedules import OccurrenceRow, ScheduleId, ScheduleRow, row_of

_SQL: Final = queries.load("schedule_pages.sql")
_COLUMNS: Final = 16


class Listed(NamedTuple):
    """A schedule with its newest occurrence, if there was any."""

    row: ScheduleRow
    last: OccurrenceRow | None


class Figures(NamedTuple):
    """How all schedules stand; `next_at` is the next nominal time of any. Unix seconds."""

    active: int
    paused: int
    faulty: int
    next_at: float | None
    now: float


def list_page(tenant: TenantId | None, stands: str, *, after: int, rows_max: int) -> list[Listed]:
    """Schedules by id from beyond `after`; `stands` is empty, active, paused or faulty."""
    params = {"tenant": tenant, "stands": stands, "after": after, "rows_max": rows_max}
    rows = queries.fetch(_SQL["list_schedules"], params)
    return [
        Listed(row_of(*row[:_COLUMNS]), None if row[_COLUMNS] is None else _occurrence(*row[_COLUMNS:])) for row in rows
    ]


def load_one(schedule: int) -> ScheduleRow | None:
    """The schedule of that id."""
    row = queries.fetch_one(_SQL["one_schedule"], {"schedule": schedule})
    return None if row is None else row_of(*row)


def load_figures(*, count_max: int) -> Figures:
    """How all schedules stand."""
    row = queries.fetch_one(_SQL["schedule_figures"], {"count_max": count_max})
    assert row is not None  # noqa: S101 - a SELECT of scalars gives a row
    return Figures(*row)


def load_history(schedule: ScheduleId, *, before: float | None, rows_max: int) -> list[OccurrenceRow]:
    """Occurrences before a nominal time, newest first."""
    params = {"schedule": schedule, "before": before, "rows_max": rows_max}
    return [_occurrence(*row) for row in queries.fetch(_SQL["older_occurrences"], params)]


def _occurrence(
    nominal: float, fate: str, reason: str, task: int | None, state: str | None, *rest: Any
) -> OccurrenceRow:
    task_id = None if task is None else TaskId(task)
    return OccurrenceRow(nominal, Fate(fate), reason, task_id, None if state is None else TaskState(state), *rest)
