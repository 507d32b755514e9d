"""Decides how a task reads as one row of a list. Pure: rows in, lines for a template out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from scheduler.live import wording
from scheduler.policy.money import NANO
from scheduler.policy.states import WAITING, TaskState
from scheduler.reads.task_lists import FoundCount, ListedRow
from scheduler.web.task_story import Chip, When, chip_of, when

MESSAGE_CHARS_MAX: Final = 200
_CENT: Final = NANO // 100


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One row: `since` is when it came, `lasts` what it has been doing for how long."""

    id: int
    name: str
    chip: Chip
    pool: str
    tenant: str
    priority: str
    attempts: str
    age: str
    since: When
    lasts: str
    cost: str
    reason: str
    message: str
    discarded: bool


def lines_of(rows: Sequence[ListedRow], *, now: float) -> list[TaskLine]:
    """The rows as they are shown at a moment (Unix seconds)."""
    return [_line(row, now) for row in rows]


def _line(row: ListedRow, now: float) -> TaskLine:
    name = f"{row.kind} · {row.key}" if row.key else row.kind
    return TaskLine(
        id=row.id,
        name=name,
        chip=Chip("close", "Discarded", "quiet") if row.discarded_at is not None else chip_of(row.state),
        pool=row.pool,
        tenant=row.tenant,
        priority=row.priority.label,
        attempts=f"{row.attempts} / {row.max_attempts}",
        age=wording.glance(max(0.0, now - row.created_at)),
        since=when(row.created_at),
        lasts=_lasts(row, now),
        cost=usd(row.cost),
        reason=(row.failure_class or "").replace("_", " "),
        message=(row.message or "")[:MESSAGE_CHARS_MAX],
        discarded=row.discarded_at is not None,
    )


def _lasts(row: ListedRow, now: float) -> str:
    """How long it has been where it is, in words."""
    if row.state is TaskState.RUNNING and row.started_at is not None:
        return f"runs {wording.glance(max(0.0, now - row.started_at))}"
    if row.due_at is not None and row.state in WAITING and row.due_at > now:
        return f"due in {wording.glance(row.due_at - now)}"
    if row.state in WAITING:
        return f"waits {wording.glance(max(0.0, now - max(row.ready_at or 0.0, row.created_at)))}"
    if row.finished_at is not None:
        return f"ended {wording.glance(max(0.0, now - row.finished_at))} ago"
    return wording.NONE


def usd(nano: int | None) -> str:
    """Dollars with the digits that matter: cents from a dollar on, two digits that are not zero below."""
    if nano is None:
        return wording.NONE
    if nano == 0 or abs(nano) >= NANO:
        return f"${Decimal(nano) / NANO:,.2f}"
    digits = 2 if abs(nano) >= 10 * _CENT else 11 - len(str(abs(nano)))
    return f"${Decimal(nano) / NANO:.{digits}f}"


def sum_of(found: FoundCount) -> str:
    """How many match, in words."""
    if found.passed is not None:
        return f"{wording.count(found.n)} among the newest {wording.count(found.passed)}"
    return f"{wording.count(found.n)}+ tasks" if found.more else wording.plural(found.n, "task")
