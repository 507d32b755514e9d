"""Reads tasks, and moves them at their owner's wish: cancel and replay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from scheduler.policy.graph import Links
from scheduler.policy.states import TaskState
from scheduler.policy.types import (
    DemandId,
    LaneKey,
    LeaseId,
    PoolId,
    PriorityClass,
    ResourceId,
    RunId,
    TaskId,
    TaskView,
    TenantId,
)
from scheduler.store import queries
from scheduler.store.asking import Question, asked
from scheduler.store.graphs import Ended

_SQL: Final = queries.load("tasks.sql")


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task with the names of what it belongs to. Times are Unix seconds."""

    id: TaskId
    tenant: str
    pool: str
    kind: str
    priority: PriorityClass
    state: TaskState
    key: str | None
    attempts: int
    max_attempts: int
    replays: int
    created_at: float
    ready_at: float | None
    due_at: float | None
    finished_at: float | None
    deadline_at: float | None
    tenant_id: TenantId
    pool_id: PoolId
    demand_id: DemandId
    amounts: tuple[float, ...]
    resources: tuple[ResourceId, ...]
    tags: dict[str, str] | None
    expected_s: float
    latest_start: float | None
    resource_names: tuple[str, ...]
    links: Links
    group: str | None
    start_by: float | None
    run: RunId | None
    writes: bool


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A finished attempt. `usage` is JSON text; `model` and `route_choice` are of one that was routed."""

    lease: LeaseId
    number: int
    worker: str
    started_at: float
    finished_at: float
    outcome: str
    failure_class: str | None
    message: str | None
    retry_after_s: float | None
    usage: str | None
    degraded: bool
    model: str | None = None
    route_choice: int | None = None


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """The attempt that runs now."""

    lease: LeaseId
    attempt: int
    worker: str
    started_at: float
    cancel_requested: bool
    degraded: bool


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks to list; None means any."""

    tenant: TenantId | None = None
    pools: tuple[PoolId, ...] | None = None
    states: tuple[TaskState, ...] | None = None
    priorities: tuple[PriorityClass, ...] | None = None
    kinds: tuple[str, ...] | None = None
    key: str | None = None


def cancel_waiting(tasks: Sequence[TaskId]) -> list[Ended]:
    """Cancel those that wait; returns which."""
    rows = queries.fetch(_SQL["cancel_waiting"], {"tasks": list(tasks)})
    return [Ended(TaskId(task), TaskState.CANCELLED, Links(links)) for task, links in rows]


def request_cancel(tasks: Sequence[TaskId]) -> set[TaskId]:
    """Tell the running ones to stop; returns which."""
    return {TaskId(row[0]) for row in queries.fetch(_SQL["request_cancel"], {"tasks": list(tasks)})}


def replay(tasks: Sequence[TaskId]) -> set[TaskId]:
    """Start ended ones afresh; returns which."""
    return {TaskId(row[0]) for row in queries.fetch(_SQL["replay_tasks"], {"tasks": list(tasks)})}


def load(tasks: Sequence[TaskId], *, tenant: TenantId | None) -> list[TaskRow]:
    """These tasks, newest first, as far as they belong to `tenant` (None: any tenant)."""
    return [_row(row) for row in queries.fetch(_SQL["read_tasks"], {"tasks": list(tasks), "tenant": tenant})]


def _row(row: queries.Row) -> TaskRow:
    head, priority, state, tail = row[:4], row[4], row[5], row[6:]
    *middle, amounts, resources, tags, expected_s, latest_start, names, links, group, start_by, run, writes = tail
    values: list[Any] = [*head, PriorityClass(priority), TaskState(state), *middle, tuple(amounts), tuple(resources)]
    values += [None if tags is None else orjson.loads(tags), expected_s, latest_start, tuple(names)]
    values += [Links(links), group, start_by, run, writes]
    return TaskRow(*values)


@asked
def load_payload(task: TaskId) -> Question[str | None]:
    """The payload as JSON text."""
    return Question(_SQL["read_payload"], {"task": task}, lambda rows: rows[0][0] if rows else None)


@asked
def load_result(task: TaskId) -> Question[str | None]:
    """The result as JSON text, once there is one."""
    return Question(_SQL["read_result"], {"task": task}, lambda rows: rows[0][0] if rows else None)


def load_states(tasks: Sequence[TaskId]) -> dict[TaskId, TaskState]:
    """Where these tasks stand."""
    return _states("read_states", tasks)


def load_ended(tasks: Sequence[TaskId]) -> dict[TaskId, TaskState]:
    """How those of these tasks ended that have ended."""
    return _states("read_ended", tasks)


def _states(statement: str, tasks: Sequence[TaskId]) -> dict[TaskId, TaskState]:
    rows = queries.fetch(_SQL[statement], {"tasks": queries.array(tasks)})
    return {TaskId(task): TaskState(state) for task, state in rows}


@asked
def load_attempts(task: TaskId, *, rows_max: int = 100) -> Question[list[AttemptRow]]:
    """The task's finished attempts, newest first."""
    params = {"task": task, "rows_max": rows_max}
    return Question(_SQL["attempts_of_task"], params, lambda rows: [AttemptRow(*row) for row in rows])


@asked
def load_lease(task: TaskId) -> Question[LeaseRow | None]:
    """The task's running attempt."""
    return Question(_SQL["lease_of_task"], {"task": task}, lambda rows: LeaseRow(*rows[0]) if rows else None)


def list_ids(wanted: TaskFilter, *, before: TaskId | None, rows_max: int) -> list[TaskId]:
    """Ids of matching tasks below `before`, newest first."""
    params: dict[str, object] = {
        "before": before,
        "pools": None if wanted.pools is None else list(wanted.pools),
        "states": None if wanted.states is None else [s.value for s in wanted.states],
        "priorities": None if wanted.priorities is None else [int(p) for p in wanted.priorities],
        "kinds": None if wanted.kinds is None else list(wanted.kinds),
        "key": wanted.key,
        "rows_max": rows_max,
    }
    statement = _SQL["list_tasks"]
    if wanted.tenant is not None:
        statement = _SQL["list_tasks_of_tenant"]
        params["tenant"] = wanted.tenant
    return [TaskId(row[0]) for row in queries.fetch(statement, params)]


@asked
def count_ahead_in_lane(task: TaskId, *, count_max: int) -> Question[int]:
    """Ready tasks of the same lane that go first, at most `count_max`."""
    return Question(_SQL["ahead_in_lane"], {"task": task, "count_max": count_max}, lambda rows: int(rows[0][0]))


@asked
def load_ready_by_lane(pool: PoolId) -> Question[dict[LaneKey, int]]:
    """Ready tasks by lane of this pool."""
    return Question(
        _SQL["ready_by_lane"],
        {"pool": pool},
        lambda rows: {
            LaneKey(pool, PriorityClass(priority), TenantId(tenant), DemandId(demand)): n
            for priority, tenant, demand, n in rows
        },
    )


def load_lane_heads(pool: PoolId, lanes: Sequence[LaneKey]) -> dict[LaneKey, list[TaskView]]:
    """The one or two tasks of each lane of this pool that may go next; their amounts are left out."""
    params = {
        "pool": pool,
        "priorities": queries.array(int(k.priority) for k in lanes),
        "tenants": queries.array(k.tenant for k in lanes),
        "demands": queries.array(k.demand for k in lanes),
    }
    heads: dict[LaneKey, list[TaskView]] = defaultdict(list)
    for priority, tenant, demand, task, ready_at, latest_start, expected_s in queries.fetch(_SQL["lane_heads"], params):
        key = LaneKey(pool, PriorityClass(priority), TenantId(tenant), DemandId(demand))
        heads[key].append(TaskView(TaskId(task), ready_at, latest_start, expected_s, ()))
    return heads
