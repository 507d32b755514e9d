"""Stores who died and how, counts deaths that are alike, and reads tasks as lists show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.policy.fingerprints import MESSAGE_CHARS_MAX
from scheduler.policy.graph import Links
from scheduler.policy.states import TaskState
from scheduler.policy.types import PoolId, PriorityClass, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("dead.sql")


class Burial(NamedTuple):
    """A task that died, and what of it makes its fingerprint."""

    task: TaskId
    fingerprint: int
    tenant: TenantId
    pool: PoolId
    kind: str
    failure_class: str
    message: str


class Letter(NamedTuple):
    """A dead letter. Times are Unix seconds; `discarded_at` None: it is kept."""

    fingerprint: int
    failure_class: str
    message: str
    died_at: float
    discarded_at: float | None


class Delta(NamedTuple):
    """Changes to the count of a group: `died` of them are deaths, of this hour (Unix seconds; None: no deaths)."""

    fingerprint: int
    n: int
    died: int
    hour: float | None
    first_at: float | None
    last_at: float | None


class NewGroup(NamedTuple):
    """Someone who died as nobody did before."""

    fingerprint: int
    tenant: TenantId
    pool: PoolId
    kind: str
    failure_class: str
    message: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Dead letters that are alike. Times are Unix seconds."""

    fingerprint: int
    tenant: str
    pool: str
    kind: str
    failure_class: str
    shape: str
    n: int
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list; None means any. `tenant` is what the caller may see."""

    tenant: TenantId | None = None
    tenants: tuple[str, ...] | None = None
    pools: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    reasons: tuple[str, ...] | None = None


class GroupPlace(NamedTuple):
    """Where a page of groups ends."""

    last_at: float
    fingerprint: int


@dataclass(frozen=True, slots=True)
class ListedRow:
    """A task as a list shows it. Times are Unix seconds; `cost` in nano-dollars, None: nothing was charged."""

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
    started_at: float | None
    failure_class: str | None
    message: str | None
    discarded_at: float | None
    cost: int | None


def load_dying(tasks: Sequence[TaskId]) -> dict[TaskId, str]:
    """The kinds of those of these tasks that have died."""
    rows = queries.fetch(_SQL["read_dying"], {"tasks": queries.array(tasks)})
    return {TaskId(task): kind for task, kind in rows}


def bury(dead: Sequence[Burial]) -> None:
    """Enter them among the dead letters."""
    params = {
        "tasks": queries.array(d.task for d in dead),
        "fingerprints": queries.array(d.fingerprint for d in dead),
        "tenants": queries.array(d.tenant for d in dead),
        "pools": queries.array(d.pool for d in dead),
        "kinds": queries.text_array(d.kind for d in dead),
        "classes": queries.text_array(d.failure_class for d in dead),
        "messages": queries.text_array(d.message[:MESSAGE_CHARS_MAX] for d in dead),
    }
    queries.run(_SQL["bury"], params)


def discard(tasks: Sequence[TaskId]) -> set[TaskId]:
    """Take them out of sight; returns which."""
    return {TaskId(row[0]) for row in queries.fetch(_SQL["discard"], {"tasks": queries.array(tasks)})}


def restore(tasks: Sequence[TaskId]) -> set[TaskId]:
    """Bring discarded ones back; returns which."""
    return {TaskId(row[0]) for row in queries.fetch(_SQL["restore"], {"tasks": queries.array(tasks)})}


@asked
def load_letter(task: TaskId) -> Question[Letter | None]:
    """The task's dead letter."""
    return Question(_SQL["read_letter"], {"task": task}, lambda rows: Letter(*rows[0]) if rows else None)


def take_deltas(*, rows_max: int) -> list[Delta]:
    """Some of the changes to the counts, gone from where they waited."""
    return [Delta(*row) for row in queries.fetch(_SQL["take_deltas"], {"rows_max": rows_max})]


def load_new_groups(fingerprints: Sequence[int]) -> list[NewGroup]:
    """One of each that is in no group yet."""
    rows = queries.fetch(_SQL["read_new_groups"], {"fingerprints": queries.array(fingerprints)})
    return [NewGroup(*row) for row in rows]


def add_groups(groups: Sequence[NewGroup], shapes: Sequence[str]) -> None:
    """Make groups, with nobody in them."""
    params = {
        "fingerprints": queries.array(g.fingerprint for g in groups),
        "tenants": queries.array(g.tenant for g in groups),
        "pools": queries.array(g.pool for g in groups),
        "kinds": queries.text_array(g.kind for g in groups),
        "classes": queries.text_array(g.failure_class for g in groups),
        "shapes": queries.text_array(shapes),
    }
    queries.run(_SQL["add_groups"], params)


def fold(deltas: Sequence[Delta]) -> None:
    """Add changes to the groups; each fingerprint may stand once for each hour."""
    sums: dict[int, list[Delta]] = defaultdict(list)
    for delta in deltas:
        sums[delta.fingerprint].append(delta)
    firsts = {f: [d.first_at for d in found if d.first_at is not None] for f, found in sums.items()}
    lasts = {f: [d.last_at for d in found if d.last_at is not None] for f, found in sums.items()}
    params = {
        "fingerprints": queries.array(sums),
        "numbers": queries.array(sum(d.n for d in found) for found in sums.values()),
        "firsts": queries.array(min(firsts[f], default=None) for f in sums),
        "lasts": queries.array(max(lasts[f], default=None) for f in sums),
    }
    queries.run(_SQL["fold_groups"], params)
    hours = [d for d in deltas if d.hour is not None and d.died]
    if hours:
        params = {
            "fingerprints": queries.array(d.fingerprint for d in hours),
            "hours": queries.array(d.hour for d in hours),
            "numbers": queries.array(d.died for d in hours),
        }
        queries.run(_SQL["fold_hours"], params)


def list_groups(wanted: GroupFilter, *, before: GroupPlace | None, rows_max: int) -> list[GroupRow]:
    """Groups that have somebody in them, those that grew last first."""
    params = {
        "tenant": wanted.tenant,
        "tenants": _list(wanted.tenants),
        "pools": _list(wanted.pools),
        "kinds": _list(wanted.kinds),
        "reasons": _list(wanted.reasons),
        "before": None if before is None else before.last_at,
        "before_fingerprint": 0 if before is None else before.fingerprint,
        "rows_max": rows_max,
    }
    return [GroupRow(*row) for row in queries.fetch(_SQL["list_groups"], params)]


def _list(values: tuple[str, ...] | None) -> list[str] | None:
    return None if values is None else list(values)


def load_group(fingerprint: int) -> GroupRow | None:
    """The group of that fingerprint."""
    row = queries.fetch_one(_SQL["read_group"], {"fingerprint": fingerprint})
    return None if row is None else GroupRow(*row)


def load_hours(fingerprints: Sequence[int], *, hours: int) -> dict[int, dict[float, int]]:
    """How many died in each of the last hours (by their beginning in Unix seconds), by fingerprint."""
    found: dict[int, dict[float, int]] = defaultdict(dict)
    params = {"fingerprints": queries.array(fingerprints), "hours": hours}
    for fingerprint, hour, n in queries.fetch(_SQL["read_hours"], params):
        found[fingerprint][hour] = n
    return found


def load_newest(fingerprints: Sequence[int]) -> dict[int, tuple[TaskId, str]]:
    """The newest dead letter of each: its task and its message."""
    rows = queries.fetch(_SQL["newest_of_groups"], {"fingerprints": queries.array(fingerprints)})
    return {fingerprint: (TaskId(task), message) for fingerprint, task, message in rows}


def newest_death() -> float | None:
    """When the last one died of whom anything is known."""
    row = queries.fetch_one(_SQL["newest_death"])
    return None if row is None else row[0]


def find_discarded(*, before: float, rows_max: int) -> list[TaskId]:
    """Tasks that were discarded before a time and may go."""
    params = {"before": before, "rows_max": rows_max, "children": int(Links.CHILDREN)}
    return [TaskId(row[0]) for row in queries.fetch(_SQL["find_discarded"], params)]


def forget(*, before: float) -> None:
    """Forget hours from before a time, and groups that nobody was in since."""
    queries.run(_SQL["forget_hours"], {"before": before})
    queries.run(_SQL["forget_groups"], {"before": before})


def load_listed(tasks: Sequence[TaskId]) -> list[ListedRow]:
    """These tasks, in the order given; those that are gone are left out."""
    rows = queries.fetch(_SQL["read_listed"], {"tasks": queries.array(tasks)}) if tasks else []
    found = {row[0]: _listed(row) for row in rows}
    return [found[task] for task in tasks if task in found]


def _listed(row: queries.Row) -> ListedRow:
    values = list(row)
    values[4:6] = PriorityClass(row[4]), TaskState(row[5])
    return ListedRow(*values)
