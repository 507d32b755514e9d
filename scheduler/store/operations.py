"""Stores operations on many tasks: what is asked for, the frozen set, and what became of each task of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.policy.graph import Links
from scheduler.policy.operations import OperationKind, OperationState, Skip
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("operations.sql")


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation to be made. `after_s` is when it begins, `as_of` the moment of its set in Unix seconds."""

    kind: OperationKind
    filter: str
    tenant: TenantId | None
    as_of: float
    actor: str
    source: str
    reason: str
    key: str | None
    rate: float
    after_s: float


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation. Times are Unix seconds; `tenant` None: of somebody who sees every tenant."""

    id: int
    kind: OperationKind
    state: OperationState
    filter: str
    tenant: TenantId | None
    actor: str
    source: str
    reason: str
    rate: float
    total: int
    applied: int
    skipped: int
    as_of: float
    created_at: float
    starts_at: float
    worked_at: float | None
    finished_at: float | None
    version: int

    @property
    def left(self) -> int:
        """How many tasks are not done yet."""
        return self.total - self.applied - self.skipped


class Due(NamedTuple):
    """An operation to work on, and how long ago it was worked on last."""

    operation: int
    kind: OperationKind
    rate: float
    credit: float
    since_s: float


class Item(NamedTuple):
    """One task of an operation that is not done yet."""

    place: int
    task: TaskId


class ItemRow(NamedTuple):
    """One task of an operation, and what became of it: None until it is done."""

    place: int
    task: TaskId
    outcome: str | None
    why: Skip | None
    done_at: float | None


class Standing(NamedTuple):
    """A task as it stands; `discarded` None: it is no dead letter."""

    state: TaskState
    links: Links
    discarded: bool | None


def add(new: NewOperation) -> int | None:
    """Make an operation with nothing in it; None when its actor has used the key before."""
    params = {
        "kind": new.kind.value,
        "filter": new.filter,
        "tenant": new.tenant,
        "as_of": new.as_of,
        "actor": new.actor,
        "source": new.source,
        "reason": new.reason,
        "key": new.key,
        "rate": new.rate,
        "after_s": new.after_s,
    }
    row = queries.fetch_one(_SQL["add_operation"], params)
    return None if row is None else int(row[0])


def find_by_key(actor: str, key: str) -> int | None:
    """The operation that an actor made with a key."""
    row = queries.fetch_one(_SQL["find_by_key"], {"actor": actor, "key": key})
    return None if row is None else int(row[0])


def set_total(operation: int, total: int) -> None:
    """Say how many tasks are in it."""
    queries.run(_SQL["set_total"], {"operation": operation, "total": total})


def load(operation: int, tenant: TenantId | None) -> OperationRow | None:
    """An operation of `tenant` (None: of anyone)."""
    rows = load_page(tenant, operation=operation, rows_max=1)
    return rows[0] if rows else None


def load_page(
    tenant: TenantId | None, *, operation: int | None = None, before: int | None = None, rows_max: int
) -> list[OperationRow]:
    """Operations of `tenant` (None: of anyone), newest first, from below the id `before`."""
    params = {"tenant": tenant, "operation": operation, "before": before, "rows_max": rows_max}
    return [_row(row) for row in queries.fetch(_SQL["read_operations"], params)]


def _row(row: queries.Row) -> OperationRow:
    values = list(row)
    values[1:3] = OperationKind(row[1]), OperationState(row[2])
    return OperationRow(*values)


def lock(operation: int, tenant: TenantId | None) -> OperationState | None:
    """Hold an operation of `tenant` (None: of anyone) until the transaction ends; its state."""
    row = queries.fetch_one(_SQL["lock_operation"], {"operation": operation, "tenant": tenant})
    return None if row is None else OperationState(row[0])


def change(operation: int, state: OperationState) -> None:
    """Bring an operation that is held into another state."""
    queries.run(_SQL["change_operation"], {"operation": operation, "state": state.value})


def lock_due(*, after: int) -> Due | None:
    """The next operation by id whose time has come, held until the transaction ends."""
    row = queries.fetch_one(_SQL["lock_due"], {"after": after})
    return None if row is None else Due(row[0], OperationKind(row[1]), *row[2:])


def load_next(operation: int, *, rows_max: int) -> list[Item]:
    """The next tasks of an operation that is held."""
    rows = queries.fetch(_SQL["next_items"], {"operation": operation, "rows_max": rows_max})
    return [Item(place, TaskId(task)) for place, task in rows]


def lock_tasks(tasks: Sequence[TaskId]) -> set[TaskId]:
    """Hold these tasks, passing over those that others hold; returns which."""
    return {TaskId(row[0]) for row in queries.fetch(_SQL["lock_tasks"], {"tasks": queries.array(tasks)})}


def tell_running(tasks: Sequence[TaskId]) -> set[TaskId]:
    """Tell these tasks' attempts to stop; returns which."""
    return {TaskId(row[0]) for row in queries.fetch(_SQL["tell_running"], {"tasks": queries.array(tasks)})}


def load_standing(tasks: Sequence[TaskId]) -> dict[TaskId, Standing]:
    """Where these tasks stand; those that are gone are missing."""
    rows = queries.fetch(_SQL["read_found"], {"tasks": queries.array(tasks)})
    return {TaskId(task): Standing(TaskState(state), Links(links), gone) for task, state, links, gone in rows}


def write_outcomes(operation: int, outcomes: Mapping[int, Skip | None]) -> None:
    """Write down what became of items by their places; None: it was done."""
    params = {
        "operation": operation,
        "places": queries.array(outcomes),
        "whys": queries.array(None if why is None else why.value for why in outcomes.values()),
    }
    queries.run(_SQL["write_outcomes"], params)


def advance(operation: int, *, applied: int, skipped: int, credit: float) -> None:
    """Count what was done; an operation with nothing left is done."""
    params = {"operation": operation, "applied": applied, "skipped": skipped, "credit": credit}
    queries.run(_SQL["advance"], params)


def load_items(operation: int, *, skipped: bool, after: int, rows_max: int) -> list[ItemRow]:
    """Tasks of an operation by place, all or the skipped ones."""
    statement = _SQL["list_skipped"] if skipped else _SQL["list_items"]
    rows = queries.fetch(statement, {"operation": operation, "after": after, "rows_max": rows_max})
    return [
        ItemRow(place, TaskId(task), outcome, None if why is None else Skip(why), at)
        for place, task, outcome, why, at in rows
    ]


def count_skips(operation: int) -> dict[Skip, int]:
    """How many tasks were skipped for each reason, those skipped most first; at most ten thousand are counted."""
    return {Skip(why): n for why, n in queries.fetch(_SQL["count_skips"], {"operation": operation})}


def delete_one(*, before: float) -> int:
    """Forget one operation that ended before a time; returns how many."""
    return queries.run(_SQL["delete_operations"], {"before": before})
