"""What the console shows of schedules: how they all stand, a page of them, and one with what is ahead and behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import NotFound
from scheduler.reads.audit import AuditRow, events_of
from scheduler.reads.schedules import Run, next_runs
from scheduler.reads.tenants import tenant_to_show
from scheduler.store import dispatch as dispatch_store
from scheduler.store import schedule_pages as store
from scheduler.store.schedule_pages import Figures, Listed
from scheduler.store.schedules import OccurrenceRow, ScheduleRow

__all__ = ["Figures", "Listed", "OccurrenceRow", "Run", "ScheduleRow"]

ROWS: Final = 50
AHEAD: Final = 5
SHOWN_AHEAD: Final = 3
COUNT_MAX: Final = 10_001


@dataclass(frozen=True, slots=True)
class Page:
    """Schedules in the order they were declared, each with its next runs; `next_after` leads on."""

    rows: Sequence[tuple[Listed, Sequence[Run]]]
    next_after: int | None


def list_page(tenant: str, stands: str, *, after: int) -> Page:
    """A page. Raises Refused for a tenant that does not exist."""
    found = store.list_page(tenant_to_show(tenant), stands, after=after, rows_max=ROWS + 1)
    page = [(listed, next_runs(listed.row, SHOWN_AHEAD)) for listed in found[:ROWS]]
    return Page(page, int(page[-1][0].row.id) if len(found) > ROWS else None)


def figures() -> Figures:
    """How all schedules stand; a count of `COUNT_MAX` means that many or more."""
    return store.load_figures(count_max=COUNT_MAX)


def schedule_row(schedule: int) -> ScheduleRow:
    """The schedule of that id. Raises NotFound."""
    row = store.load_one(schedule)
    if row is None:
        raise NotFound(f"There is no schedule {schedule}.", code="unknown_schedule")
    return row


@dataclass(frozen=True, slots=True)
class Story:
    """One schedule at a moment: what is ahead, what became of it before, who changed it."""

    now: float
    row: ScheduleRow
    ahead: Sequence[Run]
    history: Sequence[OccurrenceRow]
    more: bool
    audit: Sequence[AuditRow]


def story(schedule: int, *, before: float | None = None) -> Story:
    """Everything that is told of a schedule. Raises NotFound."""
    row = schedule_row(schedule)
    history = store.load_history(row.id, before=before, rows_max=ROWS + 1)
    return Story(
        now=dispatch_store.load_now(),
        row=row,
        ahead=next_runs(row, AHEAD),
        history=history[:ROWS],
        more=len(history) > ROWS,
        audit=events_of(f"schedule:{row.tenant_slug}/{row.name}"),
    )
