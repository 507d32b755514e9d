"""Groups: tasks that are looked at, cancelled and, where they fail fast, ended together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NewType

from scheduler.policy.graph import JoinPolicy, Links
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("groups.sql")

GroupId = NewType("GroupId", int)


class GroupTerms(NamedTuple):
    """A group as a submission meets it."""

    id: GroupId
    join: JoinPolicy
    cancelled: bool


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. Times are Unix seconds; `cause` is the member whose failure ended it."""

    id: GroupId
    tenant: str
    name: str
    join: JoinPolicy
    created_at: float
    cancelled_at: float | None
    cause: TaskId | None


class Member(NamedTuple):
    """A member that waits, or was just cancelled."""

    task: TaskId
    state: TaskState
    links: Links


def ensure(wanted: Mapping[tuple[TenantId, str], JoinPolicy]) -> dict[tuple[TenantId, str], GroupTerms]:
    """The groups of these names, made with the given join where they are new, and held until the transaction ends."""
    params = {
        "tenants": queries.array(tenant for tenant, _ in wanted),
        "names": queries.text_array(name for _, name in wanted),
    }
    found: dict[tuple[TenantId, str], GroupTerms] = {}
    while len(found) < len(wanted):  # again when one is forgotten in between
        queries.run(_SQL["ensure_groups"], params | {"joins": queries.array(join.value for join in wanted.values())})
        found = {
            (TenantId(tenant), name): GroupTerms(GroupId(group), JoinPolicy(join), cancelled)
            for group, tenant, name, join, cancelled in queries.fetch(_SQL["read_groups"], params)
        }
    return found


def load(tenant: TenantId, name: str) -> GroupRow | None:
    """The group of that name."""
    row = queries.fetch_one(_SQL["read_group"], {"tenant": tenant, "name": name})
    return None if row is None else _row(*row)


def load_page(tenant: TenantId | None, *, before: int, rows_max: int) -> list[GroupRow]:
    """Groups of a tenant (None: of anyone), newest first, by id from below `before`."""
    params = {"tenant": tenant, "before": before, "rows_max": rows_max}
    return [_row(*row) for row in queries.fetch(_SQL["list_groups"], params)]


def _row(*row: Any) -> GroupRow:
    group, slug, name, join, *rest = row
    return GroupRow(GroupId(group), slug, name, JoinPolicy(join), *rest)


def count_members(group: GroupId) -> dict[TaskState, int]:
    """How many members are in each state."""
    return {TaskState(state): n for state, n in queries.fetch(_SQL["count_members"], {"group": group})}


def fail(tasks: Iterable[TaskId]) -> list[GroupId]:
    """End the groups of these failed tasks that fail fast and have not ended; returns which."""
    return [GroupId(row[0]) for row in queries.fetch(_SQL["fail_groups"], {"tasks": queries.array(tasks)})]


def cancel(group: GroupId) -> bool:
    """Mark a group as cancelled; False when it was before."""
    return queries.fetch_one(_SQL["cancel_group"], {"group": group}) is not None


def load_closing(*, groups_max: int) -> list[GroupId]:
    """Cancelled groups that may still have members to stop."""
    return [GroupId(row[0]) for row in queries.fetch(_SQL["read_closing"], {"groups_max": groups_max})]


def load_waiting(groups: Sequence[GroupId]) -> list[Member]:
    """Members that wait."""
    rows = queries.fetch(_SQL["waiting_members"], {"groups": queries.array(groups)})
    return [Member(TaskId(task), TaskState(state), Links(links)) for task, state, links in rows]


def cancel_members(members: Sequence[Member]) -> list[Member]:
    """Cancel those that still wait and are not being moved just now; returns them."""
    rows = queries.fetch(_SQL["cancel_members"], {"tasks": queries.array(m.task for m in members)})
    return [Member(TaskId(task), TaskState.CANCELLED, Links(links)) for task, links in rows]


def tell_members(groups: Sequence[GroupId]) -> int:
    """Tell the running members to stop; returns how many were."""
    return queries.run(_SQL["tell_members"], {"groups": queries.array(groups)})


def close(groups: Sequence[GroupId]) -> None:
    """Close those that have no member left to be stopped."""
    queries.run(_SQL["close_groups"], {"groups": queries.array(groups)})


def reopen(groups: Sequence[GroupId]) -> None:
    """Have the sweep look again at those that are closed: somebody joined."""
    queries.run(_SQL["reopen_groups"], {"groups": queries.array(groups)})
