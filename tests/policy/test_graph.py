"""Graphs: what is taken, where its tasks begin, what an end means to those that come after."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import Refused
from scheduler.policy.graph import (
    CYCLE_NAMES_MAX,
    EDGES_PER_BATCH_MAX,
    EDGES_PER_TASK_MAX,
    FAILURES,
    VERDICTS,
    Arranged,
    Dependency,
    EdgeCondition,
    KnownParent,
    NewEdge,
    Node,
    Target,
    arrange,
    is_met,
)
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import TaskId

S, F, C = EdgeCondition.SUCCESS, EdgeCondition.FAILURE, EdgeCondition.COMPLETE
Edges = Mapping[str, list[tuple[str, EdgeCondition]]]


def nodes(edges: Edges) -> dict[int, Node]:
    """A batch: who comes after whom, by key."""
    return {
        place: Node(1, key, tuple(Dependency(parent, on=on) for parent, on in parents))
        for place, (key, parents) in enumerate(edges.items())
    }


def before(**states: TaskState) -> dict[Target, KnownParent]:
    """Tasks of before, by key."""
    return {Target(1, key, None): KnownParent(TaskId(100 + n), state) for n, (key, state) in enumerate(states.items())}


def states(arranged: Arranged) -> list[TaskState | None]:
    assert not arranged.refusals
    return [placement.state for _, placement in sorted(arranged.placements.items())]


def refusal(arranged: Arranged) -> Refused:
    (refused,) = arranged.refusals.values()
    assert refused.errors[0].msg == refused.detail
    return refused


@pytest.mark.parametrize("state", TaskState)
def test_an_edge_is_decided_by_the_end_of_its_parent_and_not_before(state: TaskState) -> None:
    met = {on: is_met(on, state) for on in EdgeCondition}
    if state not in TERMINAL:
        assert set(met.values()) == {None}
    else:
        assert met == {S: state is TaskState.SUCCEEDED, F: state in FAILURES, C: True}
        assert dict(VERDICTS[state]) == met


def test_a_batch_may_name_its_tasks_in_any_order() -> None:
    arranged = arrange(nodes({"c": [("b", S)], "b": [("a", C)], "a": []}), {}, together=True)
    assert states(arranged) == [TaskState.BLOCKED, TaskState.BLOCKED, None]
    assert arranged.parents == {1, 2}
    assert arranged.placements[0].edges == (NewEdge(None, 1, "b", S, None),)


def test_tasks_that_only_share_a_transaction_do_not_see_each_other() -> None:
    arranged = arrange(nodes({"a": [], "b": [("a", S)]}), {}, together=False)
    assert (set(arranged.placements), set(arranged.refusals)) == ({0}, {1})
    assert arranged.refusals[1].code == "unknown_dependency"


def test_parents_that_ended_decide_at_once_and_all_the_way_down() -> None:
    known = before(good=TaskState.SUCCEEDED, bad=TaskState.CANCELLED, going=TaskState.RUNNING)
    batch = nodes(
        {
            "a": [("good", S)],
            "b": [("bad", S), ("going", S)],
            "c": [("b", S)],
            "d": [("c", C)],
            "e": [("going", S), ("good", S)],
            "f": [("e", F)],
        }
    )
    skipped, blocked = TaskState.SKIPPED, TaskState.BLOCKED
    arranged = arrange(batch, known, together=True)
    assert states(arranged) == [None, skipped, skipped, None, blocked, blocked]
    assert [edge.met for edge in arranged.placements[4].edges] == [None, True]
    assert [edge.met for edge in arranged.placements[3].edges] == [True]


def test_a_key_that_was_used_before_means_that_task_even_inside_a_batch() -> None:
    arranged = arrange(nodes({"a": [], "b": [("a", S)]}), before(a=TaskState.SUCCEEDED), together=True)
    assert states(arranged) == [None, None]
    assert arranged.placements[1].edges[0].parent == 100


def test_ids_and_scopes_are_kept_apart() -> None:
    own = Node(1, None, (Dependency(id=TaskId(7)),))
    other = Node(2, None, (Dependency(id=TaskId(7)),))
    known = {Target(1, None, TaskId(7)): KnownParent(TaskId(7), TaskState.READY)}
    arranged = arrange({0: own, 1: other}, known, together=True)
    assert arranged.placements[0].state is TaskState.BLOCKED
    assert refusal(arranged).detail == "There is no task to come after: task 7."


def test_unknown_keys_are_refused_by_place_or_awaited() -> None:
    arranged = arrange(nodes({"a": [("b", S), ("no", S)], "b": []}), {}, together=True)
    assert (refusal(arranged).code, refusal(arranged).errors[0].loc) == ("unknown_dependency", ("after", 1))
    assert "'no'" in refusal(arranged).detail
    patient = Node(1, "a", (Dependency("later"),), awaits=True)
    arranged = arrange({0: patient}, {}, together=True)
    assert arranged.placements[0].edges == (NewEdge(None, None, "later", S, None),)
    assert arranged.placements[0].state is TaskState.BLOCKED
    by_id = Node(1, "a", (Dependency(id=TaskId(3)),), awaits=True)
    assert refusal(arrange({0: by_id}, {}, together=True)).code == "unknown_dependency"


@pytest.mark.parametrize("together", [True, False])
def test_a_task_cannot_come_after_itself(together: bool) -> None:
    refused = refusal(arrange(nodes({"a": [("a", S)]}), {}, together=together))
    assert (refused.code, refused.errors[0].loc) == ("cycle", ("after", 0))
    assert "'a'" in refused.detail or "a after a" in refused.detail


def test_a_circle_is_named_and_what_stands_behind_it_is_not_blamed() -> None:
    edges: Edges = {"root": [], "behind": [("b", S)], "a": [("root", S), ("b", S)], "b": [("c", S)], "c": [("a", S)]}
    arranged = arrange(nodes(edges), {}, together=True)
    refused = refusal(arranged)
    assert refused.code == "cycle"
    assert "b after c after a after b" in refused.detail
    assert set(arranged.refusals) == {3}
    assert refused.errors[0].loc == ("after", 0)


def test_a_long_circle_is_named_in_part() -> None:
    edges: Edges = {f"t{n}": [(f"t{(n + 1) % 50}", S)] for n in range(50)}
    detail = refusal(arrange(nodes(edges), {}, together=True)).detail
    assert "(50 tasks)" in detail
    assert detail.count(" after ") <= CYCLE_NAMES_MAX + 1


def test_edges_are_bounded() -> None:
    many = Node(1, None, tuple(Dependency(id=TaskId(n)) for n in range(EDGES_PER_TASK_MAX + 1)))
    assert refusal(arrange({0: many}, {}, together=True)).code == "too_many_edges"
    known = {Target(1, "p", None): KnownParent(TaskId(1), TaskState.READY)}
    each = Node(1, None, (Dependency("p"),) * EDGES_PER_TASK_MAX)
    count = EDGES_PER_BATCH_MAX // EDGES_PER_TASK_MAX
    assert not arrange(dict.fromkeys(range(count), each), known, together=True).refusals
    assert refusal(arrange(dict.fromkeys(range(count + 1), each), known, together=True)).code == "too_many_edges"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Edges, dict[str, TaskState]]:
    """Any graph, circles included, over some tasks of before and some of the batch, in any order."""
    known = {f"k{n}": draw(st.sampled_from(list(TaskState))) for n in range(draw(st.integers(0, 3)))}
    keys = [f"t{n}" for n in range(draw(st.integers(1, 8)))]
    parent = st.tuples(st.sampled_from([*known, *keys]), st.sampled_from(list(EdgeCondition)))
    edges = {key: draw(st.lists(parent, max_size=3)) for key in draw(st.permutations(keys))}
    return edges, known


@given(graphs())
def test_any_graph_is_placed_as_a_naive_reading_says(graph: tuple[Edges, dict[str, TaskState]]) -> None:
    edges, known = graph
    arranged = arrange(nodes(edges), before(**known), together=True)
    if _has_circle(edges):
        assert {refused.code for refused in arranged.refusals.values()} == {"cycle"}
        return
    expected = _naive(edges, known)
    assert states(arranged) == [expected[key] for key in edges]
    named = {parent for parents in edges.values() for parent, _ in parents} - set(known)
    assert {list(edges)[place] for place in arranged.parents} == named


def _has_circle(edges: Edges) -> bool:
    """Whether some task is reached from itself: take steps until no new pair turns up."""
    pairs = {(child, parent) for child, parents in edges.items() for parent, _ in parents}
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return any(a == b for a, b in pairs)
        pairs |= more


def _naive(edges: Edges, known: Mapping[str, TaskState]) -> dict[str, TaskState | None]:
    """Where each task begins: look at all again and again until nothing changes."""
    found: dict[str, TaskState | None] = dict.fromkeys(edges, TaskState.BLOCKED)
    for _ in edges:
        for key, parents in edges.items():
            mets = [is_met(on, known.get(p) or found.get(p) or TaskState.READY) for p, on in parents]
            found[key] = TaskState.SKIPPED if False in mets else TaskState.BLOCKED if None in mets else None
    return found


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_a_graph_of_a_thousand_tasks_is_placed_whole(count: int) -> None:
    chance = random.Random(count)
    keys = [f"t{n}" for n in range(1_000)]
    edges: dict[str, list[tuple[str, EdgeCondition]]] = {key: [] for key in keys}
    for _ in range(count):
        child = chance.randrange(1, 1_000)
        edges[keys[child]].append((keys[chance.randrange(child)], S))
    arranged = arrange(nodes(edges), {}, together=True)
    assert len(arranged.placements) == 1_000
    assert sum(len(p.edges) for p in arranged.placements.values()) == count
