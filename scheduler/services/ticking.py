"""Lets time pass for schedules: decides the occurrences that are due, and submits the tasks of those that run.

Each schedule in a transaction of its own, locked; the task of an occurrence is stored together with the occurrence. So
it does not matter how many engines tick: a nominal time is decided once, and a crash before the commit decides nothing.
A schedule that cannot be decided, whatever is wrong with its row, says so and keeps no other from its time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from django.db import InterfaceError, OperationalError, transaction

from scheduler.errors import CronoqError
from scheduler.policy import templates
from scheduler.policy.cron import Cron, newest_runs, next_run
from scheduler.policy.schedules import (
    CATCH_UP_MAX,
    Before,
    CatchUp,
    Fate,
    Verdict,
    decide_due,
    decide_overlap,
    decide_queued,
)
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.services.submit import submit
from scheduler.store import schedules as store
from scheduler.store.schedules import Decided, DueRow, ScheduleId

logger = logging.getLogger(__name__)

SCHEDULES_MAX: Final = 100
"""Schedules decided in one tick."""
RECORDED_MAX: Final = 2 * CATCH_UP_MAX
"""Occurrences looked at and written down at once; of a longer absence the rest is told in the reason of the oldest."""
REASON_CHARS_MAX: Final = 500
FAULT_REST_S: Final = 60.0
"""A schedule that could not be decided is tried again after this: what is wrong may be mended without an edit."""
TAG: Final = "cronoq.recurring"


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a tick did. `next_at`: when to tick again at the latest, by the database clock; None if nothing is ahead."""

    submitted: int
    now: float
    next_at: float | None
    again: bool


def tick() -> Ticked:
    """Decide what is due."""
    due = store.find_due(SCHEDULES_MAX, rest_s=FAULT_REST_S)
    submitted = sum(_tick_alone(schedule) for schedule in due)
    now, next_at = store.load_next_nominal()
    return Ticked(submitted, now, next_at, again=len(due) >= SCHEDULES_MAX)


def _tick_alone(schedule: ScheduleId) -> int:
    """Decide one schedule; what is wrong with it is written down and stops no other."""
    try:
        return _tick_one(schedule)
    except (OperationalError, InterfaceError):
        raise  # the database's, not the schedule's
    except Exception as error:
        logger.exception("schedule %s cannot be decided", schedule)
        fault = f"It cannot be decided: {type(error).__name__}: {error}"
        store.note_fault(schedule, fault.replace("\x00", "")[:REASON_CHARS_MAX])
        return 0


def _tick_one(schedule: ScheduleId) -> int:
    """Decide one schedule; returns how many tasks it submitted.

    1. lock it, unless another engine has it;
    2. let go what waited for the end of the occurrence before;
    3. find the nominal times that have come, from the expression;
    4. decide each in order: missed, skipped, waiting, or submitted;
    5. say which nominal time is next.
    """
    with transaction.atomic():
        row = store.lock_due(schedule)
        if row is None:
            return 0
        pass_ = _Pass(row)
        pass_.release()
        if row.next_at is None or row.next_at > row.now:
            pass_.close(row.next_at)
            return pass_.submitted
        cron, zone = Cron(row.declared.cron), ZoneInfo(row.declared.time_zone)
        nominals, more = newest_runs(cron, zone, since=row.next_at, until=row.now, count_max=RECORDED_MAX)
        for due, note in _due(nominals, row, more=more):
            pass_.decide(due, note)
        pass_.close(next_run(cron, zone, after=nominals[-1] if nominals else row.now))
        return pass_.submitted


def _due(nominals: list[float], row: DueRow, *, more: bool) -> Iterator[tuple[float, str | None]]:
    """Nominal times with why they are missed, if they are."""
    for place, due in enumerate(decide_due(nominals, CatchUp(row.declared.catch_up), now=row.now)):
        missed = due.missed
        if missed is not None and more and place == 0:
            missed += f" So are all earlier ones since {_written(row.next_at or due.nominal)}."
        yield due.nominal, missed


class _Pass:
    """One pass over a locked schedule, with what stands before the next occurrence."""

    def __init__(self, row: DueRow) -> None:
        self.row = row
        self.template = templates.read(row.declared.task)
        self.submitted = 0
        self._waiting = store.load_waiting(row.id)
        self._last, self._state = row.last_task, row.last_state

    @property
    def _before(self) -> Before:
        return Before(len(self._waiting), self._last, self._state)

    def release(self) -> None:
        """Decide what waits in front, until one has to go on waiting."""
        while self._waiting:
            verdict = decide_queued(self.row.declared.overlap, self._before)
            if verdict.fate is Fate.QUEUED:
                return
            store.decide_waiting(self.row.id, self._act(self._waiting.pop(0), verdict))

    def decide(self, nominal: float, missed: str | None) -> None:
        """Decide a nominal time that has come, once."""
        if missed is not None:
            store.insert_occurrences(self.row.id, [Decided(nominal, Fate.MISSED, missed)])
            return
        verdict = decide_overlap(self.row.declared.overlap, self._before)
        decided = Decided(nominal, verdict.fate, verdict.reason)
        if not store.insert_occurrences(self.row.id, [decided._replace(fate=Fate.QUEUED)]):
            return
        if verdict.fate is Fate.QUEUED:
            self._waiting.append(nominal)
        else:
            store.decide_waiting(self.row.id, self._act(nominal, verdict))

    def close(self, next_at: float | None) -> None:
        """Write down where the schedule stands."""
        store.advance(self.row.id, next_at=next_at, last_task=self._last)

    def _act(self, nominal: float, verdict: Verdict) -> Decided:
        if verdict.fate is not Fate.SUBMITTED:
            return Decided(nominal, verdict.fate, verdict.reason)
        try:
            with transaction.atomic():
                task, state = self._submit(nominal)
        except CronoqError as error:
            # Written down and not tried again: what is refused now would be refused in a moment.
            return Decided(nominal, Fate.REFUSED, f"{error.code}: {error.detail}"[:REASON_CHARS_MAX])
        self.submitted += 1
        self._last, self._state = task, state
        return Decided(nominal, Fate.SUBMITTED, "", task)

    def _submit(self, nominal: float) -> tuple[TaskId, TaskState]:
        template = self.template
        fixed = template.tolerance_s is not None or template.on_miss is not None
        accepted = submit(
            self.row.tenant,
            replace(
                template,
                key=None if template.key is None else f"{template.key}@{_written(nominal)}",
                tags={**(template.tags or {}), TAG: self.row.name},
                start_at=nominal if fixed else None,
            ),
        )
        return accepted.id, accepted.state


def _written(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
