"""Decides how tasks wait for one another: whether a graph is taken, where its tasks begin, what a task's end means.

An edge is decided once, when its parent ends: met, or impossible. It never looks at results, and it never moves a task:
a waiting child with an impossible edge is to be skipped, one whose edges are all met is to be let go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from typing import Final, NamedTuple, assert_never

from scheduler.errors import FieldError, Refused
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import TaskId

EDGES_PER_TASK_MAX: Final = 1_000
EDGES_PER_BATCH_MAX: Final = 20_000
CYCLE_NAMES_MAX: Final = 8
"""Tasks of a cycle that a refusal names."""

FAILURES: Final = frozenset({TaskState.FAILED, TaskState.DEAD_LETTERED})
"""What `failure` means, and what stops a group that fails fast."""


class EdgeCondition(StrEnum):
    """How the parent has to end: well, badly (failed or dead-lettered), or in any way."""

    SUCCESS = "success"
    FAILURE = "failure"
    COMPLETE = "complete"


class JoinPolicy(StrEnum):
    """What the first failure in a group does to the rest of it: cancels it, or nothing."""

    FAIL_FAST = "fail_fast"
    BEST_EFFORT = "best_effort"


class Links(IntFlag):
    """What ties a task to others, or to a route; kept on its row, so that one without ties costs nothing.

    `ROUTED`: it asked for a capability, and may be routed anew while it is ready.
    """

    NONE = 0
    CHILDREN = 1
    PARENTS = 2
    FAIL_FAST = 4
    ROUTED = 8


class UnknownDependency(StrEnum):
    """What a pool does with a task that names a key nobody has used: refuses it, or waits for the key to come."""

    REJECT = "reject"
    AWAIT = "await"


class Dependency(NamedTuple):
    """What a submission says it comes after: a task by key or by id."""

    key: str | None = None
    id: TaskId | None = None
    on: EdgeCondition = EdgeCondition.SUCCESS

    @property
    def name(self) -> str:
        """How it is shown."""
        return repr(self.key) if self.key is not None else f"task {self.id}"


class KnownParent(NamedTuple):
    """A task that was stored before, as it was when we looked."""

    id: TaskId
    state: TaskState


class ComesAfter(NamedTuple):
    """One of those that a stored task comes after. `state` is None while nobody has used the key, `met` while open."""

    key: str | None
    id: TaskId | None
    on: EdgeCondition
    state: TaskState | None
    met: bool | None

    @property
    def name(self) -> str:
        """The key, or the id where it was named by that."""
        return self.key if self.key is not None else f"task {self.id}"


class Node(NamedTuple):
    """One task of a submission. `scope` keeps tenants apart; `awaits`: unknown keys are waited for."""

    scope: int
    key: str | None
    after: tuple[Dependency, ...]
    awaits: bool = False


class Target(NamedTuple):
    """Whom an edge points to: a key or an id of one tenant."""

    scope: int
    key: str | None
    id: TaskId | None


class NewEdge(NamedTuple):
    """An edge to store. The parent is a task stored before, another place of the same batch, or (neither) awaited.

    `met` is None while it is open.
    """

    parent: TaskId | None
    place: int | None
    key: str | None
    on: EdgeCondition
    met: bool | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a task begins: `state` is blocked or skipped, or None for one that nothing holds back."""

    state: TaskState | None
    edges: tuple[NewEdge, ...]


@dataclass(frozen=True, slots=True)
class Arranged:
    """Placements of what can be taken, refusals of the rest, and the places that others of the batch come after."""

    placements: Mapping[int, Placement]
    refusals: Mapping[int, Refused]
    parents: frozenset[int] = field(default=frozenset())


def is_met(on: EdgeCondition, state: TaskState) -> bool | None:
    """Whether an edge is met by a parent in this state; None while the parent has not ended."""
    if state not in TERMINAL:
        return None
    match on:
        case EdgeCondition.SUCCESS:
            return state is TaskState.SUCCEEDED
        case EdgeCondition.FAILURE:
            return state in FAILURES
        case EdgeCondition.COMPLETE:
            return True
        case never:
            assert_never(never)


VERDICTS: Final[Mapping[TaskState, tuple[tuple[EdgeCondition, bool], ...]]] = {
    state: tuple((on, bool(is_met(on, state))) for on in EdgeCondition) for state in TERMINAL
}
"""For each way to end: what becomes of the edges that lead away."""


def targets_of(node: Node) -> list[Target]:
    """Whom this task comes after."""
    return [Target(node.scope, each.key, each.id) for each in node.after]


def arrange(nodes: Mapping[int, Node], known: Mapping[Target, KnownParent], *, together: bool) -> Arranged:
    """Place these tasks (by their places in the submission) behind those that they come after.

    `together`: they are one batch, and may name each other in any order; else they only share a transaction. Cost grows
    with tasks plus edges.
    """
    inside = _places_by_key(nodes, known) if together else {}
    refusals: dict[int, Refused] = {}
    edges: dict[int, list[NewEdge]] = {}
    for place, node in nodes.items():
        try:
            edges[place] = _edges(node, known, inside)
        except Refused as refusal:
            refusals[place] = refusal
    if sum(map(len, edges.values())) > EDGES_PER_BATCH_MAX:
        detail = f"A submission may hold at most {EDGES_PER_BATCH_MAX} edges in all."
        return Arranged({}, {next(iter(edges)): _refused("too_many_edges", ("after",), detail)})
    order, left = _order(edges)
    if left:
        refusals |= _cycle(nodes, edges, left)
    placements: dict[int, Placement] = {}
    for place in order:
        placements[place] = _placement(edges[place], placements)
    parents = frozenset(e.place for placed in placements.values() for e in placed.edges if e.place is not None)
    return Arranged(placements, refusals, parents)


def _places_by_key(nodes: Mapping[int, Node], known: Mapping[Target, KnownParent]) -> dict[Target, int]:
    keyed = ((Target(node.scope, node.key, None), place) for place, node in nodes.items() if node.key is not None)
    return {target: place for target, place in keyed if target not in known}


def _edges(node: Node, known: Mapping[Target, KnownParent], inside: Mapping[Target, int]) -> list[NewEdge]:
    if len(node.after) > EDGES_PER_TASK_MAX:
        detail = f"A task may come after at most {EDGES_PER_TASK_MAX} others; this one names {len(node.after)}."
        raise _refused("too_many_edges", ("after",), detail)
    edges = []
    for n, (each, target) in enumerate(zip(node.after, targets_of(node), strict=True)):
        parent = known.get(target)
        place = inside.get(target)
        if parent is None and place is None and not (node.awaits and each.key is not None):
            if each.key is not None and each.key == node.key:
                raise _refused("cycle", ("after", n), f"The task comes after itself: {each.name}.")
            raise _refused("unknown_dependency", ("after", n), f"There is no task to come after: {each.name}.")
        met = None if parent is None else is_met(each.on, parent.state)
        edges.append(NewEdge(None if parent is None else parent.id, place, each.key, each.on, met))
    return edges


def _order(edges: Mapping[int, Sequence[NewEdge]]) -> tuple[list[int], set[int]]:
    """Places, parents first; and those that stand in a circle or behind one."""
    open_parents = dict.fromkeys(edges, 0)
    children: dict[int, list[int]] = {place: [] for place in edges}
    for place, mine in edges.items():
        for edge in mine:
            # The place of a refused task is in no order; what comes after it is not stored either.
            if edge.place is not None and edge.place in children:
                open_parents[place] += 1
                children[edge.place].append(place)
    free = deque(place for place, count in open_parents.items() if count == 0)
    order = []
    while free:
        place = free.popleft()
        order.append(place)
        for child in children[place]:
            open_parents[child] -= 1
            if open_parents[child] == 0:
                free.append(child)
    return order, set(edges).difference(order)


def _cycle(nodes: Mapping[int, Node], edges: Mapping[int, Sequence[NewEdge]], left: set[int]) -> dict[int, Refused]:
    """The refusal of one task that comes, by way of others, after itself: from parent to parent till one repeats."""
    walked: dict[int, int] = {}
    place = min(left)
    while place not in walked:
        walked[place], place = next((n, e.place) for n, e in enumerate(edges[place]) if e.place in left)
    circle = list(walked)[list(walked).index(place) :]
    names = [str(nodes[each].key) for each in circle[:CYCLE_NAMES_MAX]]
    names.append(f"… ({len(circle)} tasks)" if len(circle) > CYCLE_NAMES_MAX else names[0])
    detail = f"These tasks come after each other in a circle: {' after '.join(names)}."
    return {place: _refused("cycle", ("after", walked[place]), detail)}


def _placement(edges: Iterable[NewEdge], placements: Mapping[int, Placement]) -> Placement:
    """Where a task begins, its parents in the batch being placed already."""
    decided = tuple(_decided(edge, placements) for edge in edges)
    if any(edge.met is False for edge in decided):
        return Placement(TaskState.SKIPPED, decided)
    return Placement(TaskState.BLOCKED if any(edge.met is None for edge in decided) else None, decided)


def _decided(edge: NewEdge, placements: Mapping[int, Placement]) -> NewEdge:
    if edge.place is None or edge.place not in placements:
        return edge
    state = placements[edge.place].state
    return edge._replace(met=is_met(edge.on, state)) if state is TaskState.SKIPPED else edge


def _refused(code: str, loc: tuple[str | int, ...], detail: str) -> Refused:
    return Refused(detail, code=code, errors=(FieldError(loc, detail),))
