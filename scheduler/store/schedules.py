"""Reads and writes schedules and their occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NewType

import orjson

from scheduler.policy.schedules import CatchUp, Fate, Overlap
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("schedules.sql")

ScheduleId = NewType("ScheduleId", int)


@dataclass(frozen=True, slots=True)
class Declared:
    """What an operator says about a schedule. `task` is the description of the task as the API takes it."""

    cron: str
    time_zone: str
    task: dict[str, Any]
    overlap: Overlap
    catch_up: CatchUp


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule. Times are Unix seconds; `next_at` is the nominal time that is decided next."""

    id: ScheduleId
    tenant: TenantId
    tenant_slug: str
    name: str
    declared: Declared
    next_at: float | None
    last_task: TaskId | None
    paused_at: float | None
    paused_by: str
    pause_reason: str
    fault: str
    version: int


class DueRow(NamedTuple):
    """A schedule that is locked to be decided. `last_state` is that of its last task, None when there is none."""

    id: ScheduleId
    tenant: TenantId
    name: str
    declared: Declared
    next_at: float | None
    last_task: TaskId | None
    now: float
    last_state: TaskState | None


class OccurrenceRow(NamedTuple):
    """What became of a nominal time. `task_state` is that of its task, as far as it is still there."""

    nominal: float
    fate: Fate
    reason: str
    task: TaskId | None
    task_state: TaskState | None
    decided_at: float


class Decided(NamedTuple):
    """An occurrence to be written down."""

    nominal: float
    fate: Fate
    reason: str = ""
    task: TaskId | None = None


def _declared(cron: str, time_zone: str, task: str, overlap: str, catch_up: str) -> Declared:
    return Declared(cron, time_zone, orjson.loads(task), Overlap(overlap), CatchUp(catch_up))


def _params(declared: Declared, next_at: float | None) -> dict[str, object]:
    return {
        "cron": declared.cron,
        "time_zone": declared.time_zone,
        "task": orjson.dumps(declared.task).decode(),
        "overlap": declared.overlap.value,
        "catch_up": declared.catch_up.value,
        "next_at": next_at,
    }


def add(tenant: TenantId, name: str, declared: Declared, *, next_at: float | None) -> ScheduleId | None:
    """Add a schedule; None when the tenant has one of that name."""
    params = {"tenant": tenant, "name": name, **_params(declared, next_at)}
    row = queries.fetch_one(_SQL["add_schedule"], params)
    return None if row is None else ScheduleId(row[0])


def count(tenant: TenantId) -> int:
    """How many schedules the tenant has."""
    row = queries.fetch_one(_SQL["count_schedules"], {"tenant": tenant})
    return 0 if row is None else int(row[0])


def load(tenant: TenantId | None, name: str | None = None, *, after: int = 0, rows_max: int = 100) -> list[ScheduleRow]:
    """Schedules of a tenant (None: of anyone), by id from beyond `after`."""
    params = {"tenant": tenant, "name": name, "after": after, "rows_max": rows_max}
    return [row_of(*row) for row in queries.fetch(_SQL["read_schedules"], params)]


def row_of(*row: Any) -> ScheduleRow:
    """A schedule as the statements give it."""
    schedule, tenant, slug, name, cron, zone, task, overlap, catch_up, *tail = row
    declared = _declared(cron, zone, task, overlap, catch_up)
    return ScheduleRow(ScheduleId(schedule), TenantId(tenant), slug, name, declared, *tail)


def lock(tenant: TenantId, name: str) -> None:
    """Wait until nobody else decides or changes this schedule, until the transaction ends."""
    queries.fetch(_SQL["lock_schedule"], {"tenant": tenant, "name": name})


def edit(schedule: ScheduleId, declared: Declared, *, version: int, next_at: float | None) -> bool:
    """Change a schedule; False when `version` is not the current one."""
    params = {"schedule": schedule, "version": version, **_params(declared, next_at)}
    return queries.fetch_one(_SQL["edit_schedule"], params) is not None


def pause(schedule: ScheduleId, *, actor: str, reason: str) -> bool:
    """Pause a schedule; False when it is paused."""
    params = {"schedule": schedule, "actor": actor, "reason": reason}
    return queries.fetch_one(_SQL["pause_schedule"], params) is not None


def resume(schedule: ScheduleId) -> bool:
    """Resume a schedule; False when it is not paused."""
    return queries.fetch_one(_SQL["resume_schedule"], {"schedule": schedule}) is not None


def remove(schedule: ScheduleId) -> None:
    """Remove a schedule and what is known of its occurrences; their tasks stay."""
    queries.run(_SQL["remove_schedule"], {"schedule": schedule})


def find_due(rows_max: int, *, rest_s: float) -> list[ScheduleId]:
    """Active schedules with something to decide; those with a fault rest for so long before they are tried again."""
    return [ScheduleId(row[0]) for row in queries.fetch(_SQL["read_due"], {"rows_max": rows_max, "rest_s": rest_s})]


def load_next_nominal() -> tuple[float, float | None]:
    """The time, and the next nominal time of any active schedule."""
    row = queries.fetch_one(_SQL["next_nominal"])
    assert row is not None  # noqa: S101 - a SELECT of scalars gives a row
    return float(row[0]), row[1]


def lock_due(schedule: ScheduleId) -> DueRow | None:
    """Take a schedule to decide it; None when another has it, or it is not active any more."""
    row = queries.fetch_one(_SQL["lock_due"], {"schedule": schedule})
    if row is None:
        return None
    number, tenant, name, cron, zone, task, overlap, catch_up, next_at, last_task, now, state = row
    declared = _declared(cron, zone, task, overlap, catch_up)
    last_state = None if state is None else TaskState(state)
    return DueRow(ScheduleId(number), TenantId(tenant), name, declared, next_at, last_task, now, last_state)


def load_waiting(schedule: ScheduleId) -> list[float]:
    """Nominal times of the occurrences that wait for the one before, oldest first."""
    return [float(row[0]) for row in queries.fetch(_SQL["read_waiting"], {"schedule": schedule})]


def insert_occurrences(schedule: ScheduleId, decided: Sequence[Decided]) -> set[float]:
    """Write occurrences down, once each; the nominal times that had not been decided before."""
    params = {
        "schedule": schedule,
        "nominals": queries.array(d.nominal for d in decided),
        "fates": queries.array(d.fate.value for d in decided),
        "reasons": queries.text_array(d.reason for d in decided),
        "tasks": queries.array(d.task for d in decided),
    }
    return {float(row[0]) for row in queries.fetch(_SQL["insert_occurrences"], params)}


def decide_waiting(schedule: ScheduleId, decided: Decided) -> None:
    """Write down what became of an occurrence that waited."""
    params = {
        "schedule": schedule,
        "nominal": decided.nominal,
        "fate": decided.fate.value,
        "reason": decided.reason,
        "task": decided.task,
    }
    queries.run(_SQL["decide_waiting"], params)


def advance(schedule: ScheduleId, *, next_at: float | None, last_task: TaskId | None) -> None:
    """Say which nominal time is next, and which task was the last."""
    queries.run(_SQL["advance"], {"schedule": schedule, "next_at": next_at, "last_task": last_task})


def note_fault(schedule: ScheduleId, fault: str) -> None:
    """Say why the schedule could not be decided."""
    queries.run(_SQL["note_fault"], {"schedule": schedule, "fault": fault})


def newest_decided(schedule: ScheduleId) -> float | None:
    """The newest nominal time that was decided."""
    row = queries.fetch_one(_SQL["newest_decided"], {"schedule": schedule})
    return None if row is None else row[0]


def load_occurrences(schedule: ScheduleId, *, rows_max: int) -> list[OccurrenceRow]:
    """The newest occurrences, newest first."""
    rows = queries.fetch(_SQL["read_occurrences"], {"schedule": schedule, "rows_max": rows_max})
    return [
        OccurrenceRow(nominal, Fate(fate), reason, task, None if state is None else TaskState(state), decided_at)
        for nominal, fate, reason, task, state, decided_at in rows
    ]


def forget_occurrences(*, keep_s: float, rows_max: int) -> int:
    """Forget decided occurrences older than `keep_s`, except the newest of each schedule; returns how many."""
    return queries.run(_SQL["forget_occurrences"], {"keep_s": keep_s, "rows_max": rows_max})
