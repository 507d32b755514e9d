"""What a client says about tasks that come after others and about groups, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, model_validator

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Text
from scheduler.policy.graph import ComesAfter, Dependency, EdgeCondition, JoinPolicy
from scheduler.policy.types import TaskId
from scheduler.reads.groups import GroupDetail, GroupRow
from scheduler.reads.tasks import ID_MAX

Id = Annotated[int, Field(strict=True, ge=1, le=ID_MAX)]
GroupName = Annotated[
    Text, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$", description="1 to 64 letters, digits and _ . : -")
]
Join = JoinPolicy


class AfterIn(In):
    """A task to come after: by the key it was or is submitted with, or by id."""

    key: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    id: Id | None = None
    on: EdgeCondition = Field(
        EdgeCondition.SUCCESS, description="How it has to end: success, failure (failed or dead-lettered) or complete"
    )

    @model_validator(mode="after")
    def _one_name(self) -> AfterIn:
        if (self.key is None) == (self.id is None):
            raise ValueError("Name the task by key or by id, and not by both.")
        return self

    def dependency(self) -> Dependency:
        """As the services take it."""
        return Dependency(self.key, None if self.id is None else TaskId(self.id), self.on)


class AfterOut(Out):
    """One of those that a task comes after. `met` is null while it is open."""

    key: str | None
    id: int | None
    on: str
    state: str | None = Field(description="Null while nobody has used the key")
    met: bool | None


class GroupListedOut(Out):
    """A group."""

    name: str
    tenant: str
    join: str
    created_at: datetime
    cancelled_at: datetime | None
    cause: int | None = Field(description="The member whose failure ended a group that fails fast")


class GroupPageOut(Out):
    """A page of groups, newest first. Ask for one group to have its members counted."""

    groups: list[GroupListedOut]
    next_cursor: int | None = Field(description="Pass it as `cursor` for the next page; null at the end")


class GroupOut(GroupListedOut):
    """A group and how far it is."""

    total: int
    ended: int
    done: bool
    counts: dict[str, int] = Field(description="Members by state; states without any are left out")


def present_after(found: ComesAfter) -> AfterOut:
    """The edge as it is sent."""
    state = None if found.state is None else found.state.value
    return AfterOut(key=found.key, id=found.id, on=found.on.value, state=state, met=found.met)


def present_group(found: GroupDetail) -> GroupOut:
    """The group as it is sent."""
    return GroupOut(
        **_fields(found.group),
        total=found.total,
        ended=found.ended,
        done=found.ended == found.total,
        counts={state.value: n for state, n in sorted(found.counts.items())},
    )


def present_groups(rows: Sequence[GroupRow], *, next_cursor: int | None) -> GroupPageOut:
    """The page as it is sent."""
    return GroupPageOut(groups=[GroupListedOut(**_fields(row)) for row in rows], next_cursor=next_cursor)


def _fields(row: GroupRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "tenant": row.tenant,
        "join": row.join.value,
        "created_at": moment(row.created_at),
        "cancelled_at": at(row.cancelled_at),
        "cause": row.cause,
    }
