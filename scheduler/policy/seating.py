"""Decides what counter each tenant comes into a plan with: its own, or lifted when it was idle.

It seats tenants for one plan; charging them for starts is `fairness` and the planner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from scheduler.policy.fairness import lifted, stayed

if TYPE_CHECKING:
    from scheduler.policy.board import Group
    from scheduler.policy.types import FairCounter, PriorityClass, TenantId, TenantView


def seated(
    groups: Sequence[Group],
    priority: PriorityClass,
    tenants: Mapping[TenantId, TenantView],
    *,
    clock: float,
    limited: Collection[TenantId],
) -> dict[TenantId, float]:
    """The counters of all tenants with work in these groups of a class; every group is put in order by them.

    `clock` is the virtual time of the class. A tenant that its own limits keep back (`limited`) is seated as one that
    was idle: it banks no credit while it may not start.
    """
    counters: dict[TenantId, float] = {}
    idle: dict[TenantId, FairCounter | None] = {}
    for tenant, ready_at in _oldest_waiting(groups).items():
        stored = tenants[tenant].counters.get(priority)
        active = None if tenant in limited else stayed(stored, oldest_ready_at=ready_at)
        if active is None:
            idle[tenant] = stored
        else:
            counters[tenant] = active.value
    if idle:
        lowest = _lowest_rival(groups, counters, idle)
        for tenant, stored in idle.items():
            counters[tenant] = lifted(stored, lowest_active=lowest[tenant], clock=clock)
    for group in groups:
        group.seal(counters)
    return counters


def _oldest_waiting(groups: Sequence[Group]) -> dict[TenantId, float]:
    """By tenant, when the oldest task that waits in these groups became ready."""
    oldest: dict[TenantId, float] = {}
    for group in groups:
        for queue in group.lanes:
            window = queue.lane.fifo or queue.lane.urgent
            ready_at = window[0].ready_at
            if ready_at < oldest.get(queue.key.tenant, inf):
                oldest[queue.key.tenant] = ready_at
    return oldest


def _lowest_rival(
    groups: Sequence[Group], active: dict[TenantId, float], idle: Iterable[TenantId]
) -> dict[TenantId, float]:
    """For each tenant that was idle, the lowest counter of the active tenants that share a pool with it."""
    lowest = dict.fromkeys(idle, inf)
    for group in groups:
        least = min((active[t] for t in group.by_tenant if t in active), default=inf)
        if least == inf:
            continue
        for tenant in group.by_tenant:
            if least < lowest.get(tenant, -inf):
                lowest[tenant] = least
    return lowest
