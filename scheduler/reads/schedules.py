"""Reads schedules for an answer: with the runs ahead as a person would see them, and what became of the last ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from scheduler.policy.cron import Cron, runs, utc_offset_s
from scheduler.policy.types import TenantId
from scheduler.store import schedules as store
from scheduler.store.schedules import OccurrenceRow, ScheduleRow

__all__ = ["OccurrenceRow", "ScheduleRow"]

RUNS_MAX: Final = 100
OCCURRENCES_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Run:
    """A nominal time ahead, and how far the schedule's wall clock is ahead of UTC then."""

    at: float
    utc_offset_s: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is ahead of a schedule and what is behind it, newest first."""

    runs: Sequence[Run]
    occurrences: Sequence[OccurrenceRow]


def outlook(row: ScheduleRow, *, runs_max: int, occurrences_max: int) -> Outlook:
    """The next runs and the last occurrences."""
    found = store.load_occurrences(row.id, rows_max=occurrences_max) if occurrences_max else []
    return Outlook(next_runs(row, runs_max), found)


def next_runs(row: ScheduleRow, runs_max: int) -> list[Run]:
    """The next runs, the first of which is the one that is decided next. Of one with a fault nothing is known."""
    if row.next_at is None or row.fault:
        return []
    zone = ZoneInfo(row.declared.time_zone)
    ahead = islice(runs(Cron(row.declared.cron), zone, after=row.next_at - 1.0), runs_max)
    return [Run(at, utc_offset_s(zone, at)) for at in ahead]


def list_schedules(tenant: TenantId | None, *, after: int, rows_max: int) -> list[ScheduleRow]:
    """A page of schedules of a tenant (None: of anyone), by id from beyond `after`."""
    return store.load(tenant, after=after, rows_max=rows_max)
