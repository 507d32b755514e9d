"""What a client says about a schedule, and what it is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Name, Reason, Text, Version
from scheduler.api.task_schemas import TaskIn
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.reads.schedules import OccurrenceRow, Outlook, Run, ScheduleRow

CRON: Final = "5 fields, or 6 with seconds first: minute, hour, day of month, month, day of week"
EXAMPLE: Final[JsonDict] = {
    "name": "nightly-report",
    "cron": "30 2 * * *",
    "time_zone": "Europe/Berlin",
    "task": {"pool": "llm", "payload": {"messages": [{"role": "user", "content": "Summarise the day."}]}},
}
CronText = Annotated[Text, Field(min_length=1, max_length=200, description=CRON)]
Zone = Annotated[Text, Field(max_length=64, description="A name like Europe/Berlin")]


class ScheduleIn(In):
    """A task to submit again and again."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    name: Name
    cron: CronText
    time_zone: Zone = "UTC"
    task: TaskIn = Field(
        description="As for POST /tasks, without times. A key is a prefix: the nominal time follows it"
    )
    overlap: Overlap = Field(Overlap.SKIP, description="While the task before has not ended")
    catch_up: CatchUp = Field(CatchUp.LAST, description="Which occurrences that nobody was there for are made up for")
    tenant: Text | None = Field(None, description="Whose tasks; needed with a token of every tenant")
    reason: Reason = ""


class ScheduleEditIn(In):
    """What to change."""

    version: Version
    cron: CronText | None = None
    time_zone: Zone | None = None
    task: TaskIn | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    reason: Reason = ""


class RunOut(Out):
    """A time ahead, with the zone's offset then: what the clocks of the zone will show."""

    at: datetime
    local: str
    utc_offset_s: float


class OccurrenceOut(Out):
    """What became of a nominal time."""

    nominal_at: datetime
    fate: str = Field(description="submitted, queued, skipped, missed or refused")
    reason: str
    task: int | None
    task_state: str | None
    decided_at: datetime


class ScheduleOut(Out):
    """A schedule."""

    name: str
    tenant: str
    cron: str
    time_zone: str
    task: dict[str, Any]
    overlap: str
    catch_up: str
    state: str = Field(description="active or paused")
    paused_by: str
    pause_reason: str
    fault: str = Field(description="Why its due time could not be decided; it is tried again every minute. Else empty")
    next_at: datetime | None
    version: int


class ScheduleDetailOut(ScheduleOut):
    """A schedule with what is ahead of it and what is behind it, newest first."""

    next_runs: list[RunOut]
    occurrences: list[OccurrenceOut]


class SchedulePageOut(Out):
    """A page of schedules, in the order in which they were made."""

    schedules: list[ScheduleOut]
    next_cursor: int | None = Field(description="Pass it as `cursor` for the next page; null at the end")


def present_schedule(row: ScheduleRow) -> dict[str, Any]:
    """The fields of `ScheduleOut`."""
    declared = row.declared
    return {
        "name": row.name,
        "tenant": row.tenant_slug,
        "cron": declared.cron,
        "time_zone": declared.time_zone,
        "task": declared.task,
        "overlap": declared.overlap.value,
        "catch_up": declared.catch_up.value,
        "state": "active" if row.paused_at is None else "paused",
        "paused_by": row.paused_by,
        "pause_reason": row.pause_reason,
        "fault": row.fault,
        "next_at": at(row.next_at),
        "version": row.version,
    }


def present_detail(row: ScheduleRow, seen: Outlook) -> ScheduleDetailOut:
    """The schedule with its outlook."""
    return ScheduleDetailOut(
        **present_schedule(row),
        next_runs=[_run(run) for run in seen.runs],
        occurrences=[_occurrence(o) for o in seen.occurrences],
    )


def _run(run: Run) -> RunOut:
    zone = timezone(timedelta(seconds=run.utc_offset_s)) if run.utc_offset_s else UTC
    return RunOut(at=moment(run.at), local=moment(run.at).astimezone(zone).isoformat(), utc_offset_s=run.utc_offset_s)


def _occurrence(row: OccurrenceRow) -> OccurrenceOut:
    return OccurrenceOut(
        nominal_at=moment(row.nominal),
        fate=row.fate.value,
        reason=row.reason,
        task=row.task,
        task_state=None if row.task_state is None else row.task_state.value,
        decided_at=moment(row.decided_at),
    )
