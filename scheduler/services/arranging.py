"""Puts submitted tasks behind those that they come after, and into their groups. Part of submission's transaction.

Costs nothing when no submission names another task or a group.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from django.db import transaction

from scheduler.errors import FieldError, Refused
from scheduler.policy.admission import Admitted, PoolTerms, Submission
from scheduler.policy.graph import Arranged, JoinPolicy, Links, NewEdge, Node, Target, arrange, targets_of
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.services.graphs import link
from scheduler.store import graphs as store
from scheduler.store import groups as group_store
from scheduler.store.graphs import StoredEdge
from scheduler.store.groups import GroupId, GroupTerms

Items = Sequence[tuple[TenantId, Submission]]
Rows = Sequence[tuple[int, Admitted]]
Pools = Mapping[str, PoolTerms]
_Groups = Mapping[tuple[TenantId, str], GroupTerms]


@dataclass(frozen=True, slots=True)
class Tie:
    """What ties one task to others. `edges` are those to store with it."""

    links: Links = Links.NONE
    group: GroupId | None = None
    group_name: str | None = None
    edges: tuple[NewEdge, ...] = ()


UNTIED: Final = Tie()


@dataclass(frozen=True, slots=True)
class Tied:
    """Rows with the state in which they begin, the ties of those that have any, and refusals, all by place."""

    rows: list[tuple[int, Admitted]]
    ties: Mapping[int, Tie]
    refusals: Mapping[int, Refused]


def tie(items: Items, rows: Rows, pools: Pools, *, together: bool) -> Tied:
    """Arrange these admitted submissions. `together`: they are one batch and may name each other."""
    submissions = [items[place][1] for place, _ in rows]
    if not any(s.after or s.group is not None or s.join is not None for s in submissions):
        return Tied(list(rows), {}, {})
    names = _group_names(items, rows)
    arranged = _arrange(items, rows, pools, together=together)
    groups = _ensure(items, names)
    refusals = dict(arranged.refusals) | _unfit_groups(items, names, groups)
    ties, placed = {}, []
    for place, row in rows:
        if place in refusals:
            continue
        ties[place] = _tie(place, arranged, groups.get((items[place][0], names.get(place, ""))), names.get(place))
        placed.append((place, _placed(row, arranged, place)))
    return Tied(placed, ties, refusals)


def _arrange(items: Items, rows: Rows, pools: Pools, *, together: bool) -> Arranged:
    nodes = {}
    for place, _ in rows:
        tenant, submission = items[place]
        if submission.after or together:
            awaits = pools[submission.pool].awaits
            nodes[place] = Node(tenant, submission.key, submission.after, awaits=awaits)
    if not any(node.after for node in nodes.values()):
        return Arranged({}, {})
    targets = list(dict.fromkeys(target for node in nodes.values() for target in targets_of(node)))
    return arrange(nodes, store.find_parents(targets), together=together)


def _tie(place: int, arranged: Arranged, group: GroupTerms | None, name: str | None) -> Tie:
    placement = arranged.placements.get(place)
    edges = placement.edges if placement is not None else ()
    links = Links.PARENTS if edges else Links.NONE
    if place in arranged.parents:
        links |= Links.CHILDREN
    if group is None:
        return Tie(links, edges=edges)
    if group.join is JoinPolicy.FAIL_FAST:
        links |= Links.FAIL_FAST
    return Tie(links, group.id, name, edges)


def _placed(row: Admitted, arranged: Arranged, place: int) -> Admitted:
    state = arranged.placements[place].state if place in arranged.placements else None
    if state is None:
        return row
    return replace(row, state=state, ready_at=None, due_at=None if state is TaskState.SKIPPED else row.due_at)


def _group_names(items: Items, rows: Rows) -> dict[int, str]:
    """The group of each place that has one; a join without a name makes one for the whole submission."""
    unnamed = f"batch-{secrets.token_hex(8)}"
    named = {}
    for place, _ in rows:
        submission = items[place][1]
        if submission.group is not None:
            named[place] = submission.group
        elif submission.join is not None:
            named[place] = unnamed
    return named


def _ensure(items: Items, names: Mapping[int, str]) -> _Groups:
    wanted: dict[tuple[TenantId, str], JoinPolicy] = {}
    for place, name in names.items():
        tenant, submission = items[place]
        join = submission.join
        known = wanted.get((tenant, name))
        wanted[tenant, name] = join or known or JoinPolicy.BEST_EFFORT
    return group_store.ensure(wanted) if wanted else {}


def _unfit_groups(items: Items, names: Mapping[int, str], groups: _Groups) -> dict[int, Refused]:
    """Refusals of those whose group joins in another way, and of new ones whose group was cancelled."""
    refusals = {}
    for place, name in names.items():
        tenant, submission = items[place]
        join = groups[tenant, name].join
        if submission.join not in (None, join):
            detail = f"The group {name!r} joins by {join}; leave the join out, or use another group."
            refusals[place] = Refused(detail, code="group_join_differs", errors=(FieldError(("join",), detail),))
    late = {p: name for p, name in names.items() if p not in refusals and groups[items[p][0], name].cancelled}
    if late:
        # One that was submitted before is answered with what became of it.
        own = {place: Target(items[place][0], items[place][1].key, None) for place in late if items[place][1].key}
        known = store.find_parents(list(own.values()))
        for place, name in late.items():
            if place not in own or own[place] not in known:
                detail = f"The group {name!r} was cancelled; use another one."
                refusals[place] = Refused(detail, code="group_cancelled", errors=(FieldError(("group",), detail),))
    return refusals


def store_ties(tied: Tied, items: Items, ids: Mapping[int, TaskId], added: AbstractSet[int], pools: Pools) -> None:
    """Store the edges of the tasks that are new (`added`); `ids` are those of all places that have one.

    Edges to tasks of before are linked after the commit. A group that was cancelled and closed meanwhile is opened
    again then, so that the sweep stops those who came late.
    """
    edges = [
        edge
        for place in sorted(added)
        for edge in _edges(place, tied.ties.get(place, UNTIED), ids, added, pools[items[place][1].pool])
    ]
    if edges:
        store.insert_edges(edges)
    unlinked = sorted({e.child for e in edges if not e.linked and e.parent is not None})
    if unlinked:
        transaction.on_commit(partial(link, unlinked), robust=True)
    groups = sorted({group for place in added if (group := tied.ties.get(place, UNTIED).group) is not None})
    if groups:
        transaction.on_commit(partial(group_store.reopen, groups), robust=True)


def _edges(
    place: int, bound: Tie, ids: Mapping[int, TaskId], added: AbstractSet[int], pool: PoolTerms
) -> Iterator[StoredEdge]:
    for n, edge in enumerate(bound.edges):
        parent = edge.parent if edge.place is None else ids[edge.place]
        linked = edge.met is not None or edge.place in added
        yield StoredEdge(ids[place], n, parent, edge, linked, pool.await_timeout_s if parent is None else None)
