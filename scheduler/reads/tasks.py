"""Tasks as their owners see them: one with its attempts, a page of many, a result."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.graph import EDGES_PER_TASK_MAX, ComesAfter, Links
from scheduler.policy.states import TaskState
from scheduler.policy.types import PoolId, PriorityClass, TaskId, TenantId
from scheduler.reads.task_lists import find_ids, read_filter
from scheduler.reads.tenants import tenant_to_show
from scheduler.store import control, graphs
from scheduler.store import tasks as store
from scheduler.store.asking import Together
from scheduler.store.tasks import AttemptRow, LeaseRow, TaskRow

__all__ = [
    "AttemptRow",
    "ComesAfter",
    "LeaseRow",
    "TaskDetail",
    "TaskPage",
    "TaskQuery",
    "TaskRow",
    "list_tasks",
    "states_of",
    "task_detail",
    "task_payload",
]

PAGE_MAX: Final = 200
ID_MAX: Final = 2**63 - 1
_ID: Final = re.compile(r"[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task with its attempts, newest first, the attempt that runs now, and its result as JSON text.

    `after` are those it comes after, in the order in which it named them; `group` is the name of its group.
    """

    task: TaskRow
    attempts: tuple[AttemptRow, ...]
    running: LeaseRow | None
    result: str | None
    after: tuple[ComesAfter, ...] = ()
    group: str | None = None


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks to list; None means any. `tenant` is a slug, for callers that may see every tenant.

    `filter` is a text by the grammar of `policy.filters`, and stands alone.
    """

    pools: tuple[str, ...] | None = None
    states: tuple[TaskState, ...] | None = None
    priorities: tuple[PriorityClass, ...] | None = None
    kinds: tuple[str, ...] | None = None
    key: str | None = None
    tenant: str | None = None
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks, newest first, and the cursor of the next page, None at the end."""

    tasks: tuple[TaskRow, ...]
    next_cursor: str | None


def task_detail(task: TaskId, tenant: TenantId | None) -> TaskDetail:
    """A task of `tenant` (None: of anyone). Raises NotFound, also for another tenant's."""
    return detailing(task_row(task, tenant), Together())()


def detailing(row: TaskRow, asking: Together) -> Callable[[], TaskDetail]:
    """Ask beside what else is asked for what belongs to a task; what comes back gives the whole."""
    lease = asking.add(store.load_lease.question(row.id)) if row.state is TaskState.RUNNING else None
    result = asking.add(store.load_result.question(row.id)) if row.state is TaskState.SUCCEEDED else None
    attempts = asking.add(store.load_attempts.question(row.id)) if row.attempts or row.replays else None
    after = None
    if row.links & Links.PARENTS:
        after = asking.add(graphs.load_parents.question(row.id, rows_max=EDGES_PER_TASK_MAX))
    return lambda: TaskDetail(
        row,
        tuple(attempts.value) if attempts else (),
        lease.value if lease else None,
        result.value if result else None,
        tuple(after.value) if after else (),
        row.group,
    )


def list_tasks(query: TaskQuery, tenant: TenantId | None, *, cursor: str | None, rows_max: int) -> TaskPage:
    """A page of the tasks of `tenant` (None: of anyone). Raises Refused for a filter or cursor that means nothing."""
    before = _before(cursor)
    if query.filter is not None:
        return _list_filtered(query, tenant, before=before, rows_max=rows_max)
    wanted = store.TaskFilter(
        tenant=tenant_to_show(query.tenant, tenant),
        pools=_pools(query.pools),
        states=query.states,
        priorities=query.priorities,
        kinds=query.kinds,
        key=query.key,
    )
    # One more than asked for tells whether there is a next page.
    ids = store.list_ids(wanted, before=before, rows_max=rows_max + 1)
    shown = ids[:rows_max]
    rows = tuple(store.load(shown, tenant=tenant)) if shown else ()
    return TaskPage(rows, str(shown[-1]) if len(ids) > rows_max else None)


def _list_filtered(query: TaskQuery, tenant: TenantId | None, *, before: int | None, rows_max: int) -> TaskPage:
    if query != TaskQuery(filter=query.filter):
        detail = "Write everything into 'filter', or leave it out."
        raise Refused(detail, code="bad_filter", errors=(FieldError(("filter",), detail),))
    ids, beyond = find_ids(read_filter(query.filter or ""), tenant, before=before, rows_max=rows_max)
    rows = {row.id: row for row in store.load(ids, tenant=tenant)} if ids else {}
    return TaskPage(tuple(rows[task] for task in ids if task in rows), None if beyond is None else str(beyond))


def task_payload(task: TaskId, tenant: TenantId | None) -> str:
    """What the task carries, as JSON text. Raises NotFound."""
    task_row(task, tenant)
    payload = store.load_payload(task)
    if payload is None:
        raise NotFound(f"The payload of task {task} was removed.", code="payload_removed")
    return payload


def states_of(tasks: Sequence[TaskId]) -> dict[TaskId, TaskState]:
    """Where these tasks stand; unknown ones are missing from the answer."""
    return store.load_states(tasks)


def ended_of(tasks: Sequence[TaskId]) -> dict[TaskId, TaskState]:
    """How these tasks ended; those that have not, and unknown ones, are missing from the answer."""
    return store.load_ended(tasks)


def task_row(task: TaskId, tenant: TenantId | None) -> TaskRow:
    """A task of `tenant` (None: of anyone). Raises NotFound, also for another tenant's."""
    rows = store.load([task], tenant=tenant) if 0 < task <= ID_MAX else []
    if not rows:
        raise NotFound(f"There is no task {task}.", code="unknown_task")
    return rows[0]


def _before(cursor: str | None) -> TaskId | None:
    if cursor is None:
        return None
    if not _ID.fullmatch(cursor) or int(cursor) > ID_MAX:
        detail = "This cursor is not one that a list gave out; begin again without it."
        raise Refused(detail, code="bad_cursor", errors=(FieldError(("cursor",), detail),))
    return TaskId(int(cursor))


def _pools(names: tuple[str, ...] | None) -> tuple[PoolId, ...] | None:
    if names is None:
        return None
    known = {row.name: row.id for row in control.load_pools([n for n in names if "\x00" not in n])}
    for name in names:
        if name not in known:
            detail = f"There is no pool named {name!r}."
            raise Refused(detail, code="unknown_pool", errors=(FieldError(("pool",), detail),))
    return tuple(known[name] for name in names)
