"""Stores how tasks wait for one another, and carries the end of some to those that come after them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scheduler.policy.graph import VERDICTS, ComesAfter, EdgeCondition, KnownParent, Links, NewEdge, Target
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId
from scheduler.policy.upstream import Outcome
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("graphs.sql")


class Ended(NamedTuple):
    """A task that has just ended, and what ties it to others."""

    task: TaskId
    state: TaskState
    links: Links


class StoredEdge(NamedTuple):
    """An edge with its child; `linked`: its parent is known to carry the flag that makes its end look here."""

    child: TaskId
    place: int
    parent: TaskId | None
    edge: NewEdge
    linked: bool
    await_s: float | None


class UnlinkedEdge(NamedTuple):
    """An edge to be linked. `parent` is None for a key that nobody has used; `late`: it was waited for long enough."""

    child: TaskId
    place: int
    on: EdgeCondition
    parent: TaskId | None
    awaited: bool
    late: bool


class DecidedEdge(NamedTuple):
    """An edge that is decided by itself, not by the end of its parent just now."""

    child: TaskId
    place: int
    met: bool


def find_parents(targets: Sequence[Target]) -> dict[Target, KnownParent]:
    """Those of these tasks that exist, each within its tenant."""
    by_key = [t for t in targets if t.key is not None]
    by_id = [t for t in targets if t.key is None]
    rows = queries.fetch(
        _SQL["find_parents"],
        {
            "tenants": queries.array(t.scope for t in by_key),
            "keys": queries.text_array(t.key for t in by_key),
            "id_tenants": queries.array(t.scope for t in by_id),
            "ids": queries.array(t.id for t in by_id),
        },
    )
    both = {False: by_key, True: by_id}
    return {both[by][place - 1]: KnownParent(TaskId(task), TaskState(state)) for by, place, task, state in rows}


def insert_edges(edges: Sequence[StoredEdge]) -> None:
    """Store edges of tasks that were just inserted."""
    queries.run(
        _SQL["insert_edges"],
        {
            "children": queries.array(e.child for e in edges),
            "places": queries.array(e.place for e in edges),
            "parents": queries.array(e.parent for e in edges),
            "keys": queries.text_array(e.edge.key for e in edges),
            "conditions": queries.array(e.edge.on.value for e in edges),
            "mets": queries.array(e.edge.met for e in edges),
            "linked": queries.array(e.linked for e in edges),
            "awaits_s": queries.array(e.await_s for e in edges),
        },
    )


def lock_followers(
    ended: Iterable[tuple[TaskId, TaskState]], decided: Sequence[DecidedEdge] = (), own: Sequence[TaskId] = ()
) -> set[TaskId]:
    """Lock the blocked tasks that these ends may move, and the blocked ones among `own`; returns which."""
    params = _verdicts(ended) | {
        "edge_children": queries.array(d.child for d in decided),
        "edge_mets": queries.array(d.met for d in decided),
        "own": queries.array(own),
    }
    return {TaskId(row[0]) for row in queries.fetch(_SQL["lock_followers"], params)}


def decide_followers(
    ended: Iterable[tuple[TaskId, TaskState]], decided: Sequence[DecidedEdge], locked: Iterable[TaskId]
) -> tuple[dict[TaskId, TaskState], set[TaskId]]:
    """Move the locked tasks on: where each went; and tasks that came meanwhile, for which to lock and decide again."""
    params = _verdicts(ended) | {
        "edge_children": queries.array(d.child for d in decided),
        "edge_places": queries.array(d.place for d in decided),
        "edge_mets": queries.array(d.met for d in decided),
        "locked": queries.array(locked),
    }
    rows = queries.fetch(_SQL["decide_followers"], params)
    moved = {TaskId(task): TaskState(state) for task, state in rows if state is not None}
    return moved, {TaskId(task) for task, state in rows if state is None}


def _verdicts(ended: Iterable[tuple[TaskId, TaskState]]) -> dict[str, object]:
    """What each end makes of the edges that lead away, as arrays; and the same for a task that is skipped."""
    lines = [(task, on, met) for task, state in ended for on, met in VERDICTS[state]]
    fate = VERDICTS[TaskState.SKIPPED]
    return {
        "parents": queries.array(task for task, _, _ in lines),
        "conditions": queries.array(on.value for _, on, _ in lines),
        "mets": queries.array(met for _, _, met in lines),
        "fate_conditions": queries.array(on.value for on, _ in fate),
        "fate_mets": queries.array(met for _, met in fate),
    }


def load_unlinked(children: Sequence[TaskId] | None, *, edges_max: int) -> list[UnlinkedEdge]:
    """Edges to be linked, of these children or of any."""
    params = {"children": None if children is None else list(children), "edges_max": edges_max}
    return [
        UnlinkedEdge(TaskId(child), place, EdgeCondition(on), parent, awaited, late)
        for child, place, on, parent, awaited, late in queries.fetch(_SQL["read_unlinked"], params)
    ]


def flag_parents(parents: Iterable[TaskId]) -> set[TaskId]:
    """Have the end of these tasks look for edges; those that are being moved just now are missing from the answer."""
    params = {"parents": queries.array(parents), "flag": int(Links.CHILDREN)}
    return {TaskId(row[0]) for row in queries.fetch(_SQL["flag_parents"], params)}


def take_linking_turn() -> None:
    """Wait until no other transaction links awaited keys; held until this one ends."""
    queries.run(_SQL["take_linking_turn"])


def closes_circle(edges: Sequence[UnlinkedEdge]) -> set[TaskId]:
    """The children among these edges that their parent comes after."""
    params = {"children": queries.array(e.child for e in edges), "parents": queries.array(e.parent for e in edges)}
    return {TaskId(row[0]) for row in queries.fetch(_SQL["closes_circle"], params)}


def set_linked(edges: Sequence[UnlinkedEdge]) -> None:
    """The parents of these edges carry the flag now."""
    queries.run(
        _SQL["set_linked"],
        {
            "children": queries.array(e.child for e in edges),
            "places": queries.array(e.place for e in edges),
            "parents": queries.array(e.parent for e in edges),
        },
    )


@asked
def load_parents(task: TaskId, *, rows_max: int) -> Question[list[ComesAfter]]:
    """Those that a task comes after, in the order in which it named them."""
    return Question(
        _SQL["read_parents"],
        {"task": task, "rows_max": rows_max},
        lambda rows: [
            ComesAfter(key, parent, EdgeCondition(on), None if state is None else TaskState(state), met)
            for key, parent, on, state, met in rows
        ],
    )


def load_upstream(tasks: Sequence[TaskId], *, bytes_max: int) -> dict[TaskId, list[Outcome]]:
    """What became of the parents of these tasks; results of up to about `bytes_max` each, four times that in all."""
    params = {"tasks": queries.array(tasks), "bytes_max": bytes_max, "read_max": 4 * bytes_max}
    outcomes: dict[TaskId, list[Outcome]] = defaultdict(list)
    for child, *outcome in queries.fetch(_SQL["read_upstream"], params):
        outcomes[TaskId(child)].append(Outcome(*outcome))
    return outcomes
