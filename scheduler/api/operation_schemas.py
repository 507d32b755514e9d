"""How operations on many tasks are written in requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Moment, Number, Reason, Text, Whole
from scheduler.policy.filters import format_filter
from scheduler.policy.operations import RATE_DEFAULT, RATE_MAX, SKIPS
from scheduler.reads.operations import ItemRow, OperationDetail, Preview

Kind = Literal["replay", "cancel", "discard", "restore"]


class OperationIn(In):
    """What to do to which tasks."""

    kind: Kind
    filter: Text = ""
    reason: Reason = ""
    rate: Annotated[Number, Field(gt=0, le=RATE_MAX, description="Tasks per second")] = RATE_DEFAULT
    as_of: Moment | None = None
    shown: Whole | None = None


class PreviewOut(Out):
    """What an operation would be done to. `filter` is how it is understood."""

    kind: Kind
    filter: str
    count: int
    sample: list[int]
    as_of: datetime


class OperationOut(Out):
    """An operation. `left` tasks are not done yet; `skips` says why tasks were skipped."""

    id: int
    kind: Kind
    state: Literal["starting", "running", "paused", "aborted", "done"]
    filter: str
    actor: str
    reason: str
    rate: float
    total: int
    applied: int
    skipped: int
    left: int
    skips: dict[str, int]
    as_of: datetime
    created_at: datetime
    starts_at: datetime
    finished_at: datetime | None
    version: int


class OperationPageOut(Out):
    """A page of operations."""

    operations: list[OperationOut]
    next_cursor: int | None


class ItemOut(Out):
    """One task of an operation. `outcome` null: not done yet."""

    place: int
    task: int
    outcome: Literal["applied", "skipped"] | None
    why: str | None
    says: str | None
    done_at: datetime | None


class ItemPageOut(Out):
    """A page of an operation's tasks, in the order in which they are done."""

    tasks: list[ItemOut]
    next_cursor: int | None


def present_preview(found: Preview) -> PreviewOut:
    """The answer to a preview."""
    sample: list[int] = [row.id for row in found.sample]
    return PreviewOut(
        kind=found.kind.value,
        filter=format_filter(found.filter),
        count=found.count,
        sample=sample,
        as_of=moment(found.as_of),
    )


def present_operation(found: OperationDetail) -> OperationOut:
    """An operation as it is answered."""
    row = found.row
    return OperationOut(
        id=row.id,
        kind=row.kind.value,
        state=row.state.value,
        filter=row.filter,
        actor=row.actor,
        reason=row.reason,
        rate=row.rate,
        total=row.total,
        applied=row.applied,
        skipped=row.skipped,
        left=row.left,
        skips={why.value: n for why, n in found.skips.items()},
        as_of=moment(row.as_of),
        created_at=moment(row.created_at),
        starts_at=moment(row.starts_at),
        finished_at=at(row.finished_at),
        version=row.version,
    )


def present_item(row: ItemRow) -> ItemOut:
    """One task of it."""
    return ItemOut(
        place=row.place,
        task=row.task,
        outcome=row.outcome,  # type: ignore[arg-type]  # the database holds no other word
        why=None if row.why is None else row.why.value,
        says=None if row.why is None else SKIPS[row.why],
        done_at=at(row.done_at),
    )
