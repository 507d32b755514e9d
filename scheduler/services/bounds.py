"""Keeps pools and tenants within what they may have waiting, as part of submission's transaction.

Far from every bound it costs no statement of its own. Near one, submissions take turns, count exactly, and tasks are
ended for others where the pool says so. A caller's own transaction takes no turn, because it may stay open for long:
what it has not committed is what a bound can be overshot by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.errors import Unavailable
from scheduler.policy.admission import Admitted, Submission
from scheduler.policy.bounds import Newcomer, PoolBounds, TenantBounds, allot, crowded, room_wanted, turn_away
from scheduler.policy.states import WAITING
from scheduler.policy.types import PoolId, TenantId
from scheduler.services.graphs import follow
from scheduler.store import bounds as store
from scheduler.store.submit import find_by_key

Items = Sequence[tuple[TenantId, Submission]]
Rows = Sequence[tuple[int, Admitted]]


def hold_bounds(
    items: Items,
    rows: Rows,
    pools: Mapping[PoolId, PoolBounds],
    tenants: Mapping[TenantId, TenantBounds],
    *,
    takes_turns: bool,
) -> Mapping[int, Unavailable]:
    """Decide which of these rows may not be stored, by place, and end the tasks that make room for the others.

    1. turn away classes that an overloaded pool does not take;
    2. leave aside repetitions of a key, which add nothing;
    3. near a bound: take turns, count, find out who could go, let in.
    """
    coming = [
        Newcomer(place, row.pool, items[place][0], items[place][1].priority)
        for place, row in rows
        if row.state in WAITING
    ]
    refusals = turn_away(coming, pools)
    near = crowded(coming, pools, tenants)
    if not refusals and not any(near):
        return {}
    known = _known(items, coming)
    refusals = {place: refusal for place, refusal in refusals.items() if place not in known}
    coming = [new for new in coming if new.place not in known and new.place not in refusals]
    if coming and any(near):
        refusals |= _let_in(coming, pools, tenants, near, takes_turns=takes_turns)
    return refusals


def _known(items: Items, coming: Sequence[Newcomer]) -> set[int]:
    """Places of those whose key is used already."""
    keyed = [new.place for new in coming if items[new.place][1].key is not None]
    if not keyed:
        return set()
    found = find_by_key([items[p][0] for p in keyed], [items[p][1].key or "" for p in keyed])
    return {keyed[n] for n in found}


def _let_in(
    coming: Sequence[Newcomer],
    pools: Mapping[PoolId, PoolBounds],
    tenants: Mapping[TenantId, TenantBounds],
    near: tuple[Sequence[PoolId], Sequence[TenantId]],
    *,
    takes_turns: bool,
) -> Mapping[int, Unavailable]:
    if takes_turns:
        store.take_turns(*near)
    depths = store.load_depths(*near)
    candidates = [
        candidate
        for pool, tasks_max in sorted(room_wanted(coming, pools, depths).items())
        for candidate in store.lock_candidates(
            pools[pool], least=min(n.priority for n in coming if n.pool == pool), tasks_max=tasks_max
        )
    ]
    allotment = allot(coming, pools, tenants, depths, candidates)
    if allotment.shed:
        tied = [ended for ended in store.shed(allotment.shed) if ended.links]
        if tied:
            follow(tied)
    return allotment.refusals
