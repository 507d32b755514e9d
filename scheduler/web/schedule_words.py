"""Decides how a schedule reads: its rhythm in words, its times on its own zone's clock, what became of each of them.

Pure. A time is said on the schedule's clock with the zone's name and, beside it, in UTC: on the days on which clocks
change only the two together say when something runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from scheduler.live import wording
from scheduler.policy.cron import Cron
from scheduler.policy.cron_words import in_words
from scheduler.policy.schedules import ON_TIME_S, CatchUp, Fate, Overlap
from scheduler.reads.schedule_pages import Figures, Listed, OccurrenceRow, Run, ScheduleRow
from scheduler.web import task_story, times
from scheduler.web.task_story import Chip, Figure, When, when

OVERLAPS: Final = {
    Overlap.SKIP: "Skip it: the next run is left out while the one before has not ended",
    Overlap.ALLOW: "Allow it: runs go on beside each other",
    Overlap.QUEUE: "Queue it: it waits until the one before has ended",
    Overlap.QUEUE_ON_SUCCESS: "Queue it: it waits until the one before has succeeded",
}
CATCH_UPS: Final = {
    CatchUp.NONE: "None: what nobody was there for is missed",
    CatchUp.LAST: "The last: the newest late run is made up for",
    CatchUp.ALL: "All: late runs are made up for, at most 100",
}
_FATES: Final = {
    Fate.SUBMITTED: ("ok", "Submitted", "ok"),
    Fate.QUEUED: ("stale", "Waits for the one before", "quiet"),
    Fate.SKIPPED: ("close", "Skipped", "quiet"),
    Fate.MISSED: ("cross", "Missed", "bad"),
    Fate.REFUSED: ("cross", "Refused", "bad"),
}


def stands(row: ScheduleRow) -> Chip:
    """Where a schedule stands, as it is shown."""
    if row.paused_at is not None:
        return Chip("pause", "Paused", "warn")
    if row.fault:
        return Chip("cross", "Cannot be decided", "bad")
    return Chip("close", "Over", "quiet") if row.next_at is None else Chip("ok", "Active", "ok")


def rhythm(cron: str) -> str:
    """The expression in words where it is a usual one, else empty."""
    return in_words(Cron(cron)) or ""


def clock_rule(cron: str) -> str:
    """What happens to it on days on which clocks change."""
    if Cron(cron).names_fixed_times:
        return "Times of the day: each runs once, also on the days on which the zone's clocks change."
    return "An interval: it keeps its pace when the zone's clocks change."


@dataclass(frozen=True, slots=True)
class AheadLine:
    """A run ahead: on the schedule's clock, in UTC, and how long until then. `note`: the clocks change before it."""

    local: str
    utc: When
    until: str
    note: str = ""


def ahead_lines(runs: Sequence[Run], zone: str, *, now: float) -> list[AheadLine]:
    """Runs ahead, soonest first."""
    lines = []
    before = None
    for run in runs:
        note = ""
        if before is not None and run.utc_offset_s != before:
            note = f"the clocks of {zone} change before it: {_offset(before)} becomes {_offset(run.utc_offset_s)}"
        before = run.utc_offset_s
        lines.append(AheadLine(_local(run.at, zone), when(run.at), _until(run.at, now), note))
    return lines


def _local(at: float, zone: str) -> str:
    there = datetime.fromtimestamp(at, ZoneInfo(zone))
    seconds = f":{there:%S}" if there.second else ""
    return f"{there:%a} {there.day} {there:%b %H:%M}{seconds} {there:%Z}"


def _offset(seconds: float) -> str:
    sign, minutes = "-" if seconds < 0 else "+", round(abs(seconds) / 60)
    return f"UTC{sign}{minutes // 60}" + (f":{minutes % 60:02d}" if minutes % 60 else "")


def _until(at: float, now: float) -> str:
    return f"in {wording.duration(at - now)}" if at > now else f"due {wording.duration(now - at)} ago"


@dataclass(frozen=True, slots=True)
class OccurrenceLine:
    """What became of a nominal time."""

    local: str
    utc: When
    chip: Chip
    reason: str
    task: int | None
    late: str


def occurrence_line(row: OccurrenceRow, zone: str) -> OccurrenceLine:
    """One line of the history; of a task that is still there, how that stands."""
    chip = Chip(*_FATES[row.fate])
    if row.fate is Fate.SUBMITTED and row.task_state is not None:
        chip = task_story.chip_of(row.task_state)
    late_s = row.decided_at - row.nominal
    late = f"{wording.duration(late_s)} late" if row.task is not None and late_s > ON_TIME_S else ""
    return OccurrenceLine(_local(row.nominal, zone), when(row.nominal), chip, row.reason, row.task, late)


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule in the list."""

    row: ScheduleRow
    chip: Chip
    rhythm: str
    ahead: Sequence[AheadLine]
    last: OccurrenceLine | None


def line_of(listed: Listed, ahead: Sequence[Run], *, now: float) -> ScheduleLine:
    """One row of the list. A paused schedule has nothing ahead of it."""
    row, zone = listed.row, listed.row.declared.time_zone
    return ScheduleLine(
        row=row,
        chip=stands(row),
        rhythm=rhythm(row.declared.cron),
        ahead=[] if row.paused_at is not None else ahead_lines(ahead, zone, now=now),
        last=None if listed.last is None else occurrence_line(listed.last, zone),
    )


def list_figures(found: Figures) -> list[Figure]:
    """The numbers over the list."""
    until = wording.NONE if found.next_at is None else wording.glance(max(found.next_at - found.now, 0.0))
    at = "nothing is ahead" if found.next_at is None else f"at {times.clock(found.next_at)}"
    return [
        Figure("Active", wording.count(found.active), "submit at their times"),
        Figure("Paused", wording.count(found.paused), "submit nothing until resumed"),
        Figure("Faulty", wording.count(found.faulty), "could not be decided; tried again each minute"),
        Figure("Next run in", until, at),
    ]


def headline(row: ScheduleRow, ahead: Sequence[AheadLine]) -> str:
    """Where the schedule stands, in a sentence."""
    if row.paused_at is not None:
        why = f": “{row.pause_reason}”" if row.pause_reason else ""
        return f"Paused by {row.paused_by}{why}. It submits nothing until it is resumed."
    if row.fault:
        return f"Its next time could not be decided: {row.fault} It is tried again each minute."
    if not ahead:
        return "Its expression names no time any more."
    return f"It runs {rhythm(row.declared.cron) or 'as its expression says'}; next {ahead[0].until}, {ahead[0].local}."
