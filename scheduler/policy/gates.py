"""Decides whether a lane may start anything in this plan, and what of its limits a head lacks and keeps from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.policy.limits import Short, ShortBy, shortage
from scheduler.policy.types import Hold, WaitReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.policy.board import Demand, Level
    from scheduler.policy.quotas import Quota
    from scheduler.policy.run_gates import Runs
    from scheduler.policy.types import Lane, LaneKey, PriorityClass, Snapshot, TaskView, TenantId

    Lack = tuple[Level, float, Short]
    """A limit, the amount that a head needs of it, and what is missing."""


def closed_to(lane: Lane, snapshot: Snapshot, quotas: Mapping[TenantId, Quota], runs: Runs) -> WaitReason | None:
    """The first gate before those of slots and limits that keeps the whole lane out of this plan; None for none."""
    key = lane.key
    if (snapshot.kills is not None and snapshot.kills.reach(key)) or runs.is_killed(key.demand):
        return WaitReason.KILLED
    if snapshot.pools[key.pool].paused:
        return WaitReason.POOL_PAUSED
    if snapshot.tenants[key.tenant].suspended:
        return WaitReason.TENANT_SUSPENDED
    if runs.is_stopped(key.demand):
        return WaitReason.RUN_NOT_ACTIVE
    quota = quotas.get(key.tenant)
    closed = None if quota is None else quota.closed()
    return closed or runs.closed(lane)


def lacks(demand: Demand, head: TaskView, priority: PriorityClass, *, now: float) -> list[Lack]:
    """The limits that do not admit the head now, in the demand's order; none when it can start."""
    lacking = []
    for level, amount in zip(demand.levels, head.amounts, strict=True):
        offered, limit = level.offered(priority, head.id, amount) if level.asides else (level.available, level.limit)
        short = shortage(limit, offered, amount, now=now, floor=demand.leaves(level))
        if short is not None:
            lacking.append((level, amount, short))
    return lacking


def hold_for(lane: LaneKey, lacking: list[Lack]) -> Hold:
    """Why a lane waits, by the first limit that its head lacks; one behind which nobody answers is told before others.

    Looking again is worth it once all of them can have enough.
    """
    known = [short.look_again_at for _, _, short in lacking if short.look_again_at is not None]
    again = max(known) if len(known) == len(lacking) else None
    barred = next((lack for lack in lacking if lack[2].by is ShortBy.BARRED), None)
    level, amount, short = barred or lacking[0]
    reason = WaitReason.RESOURCE if barred is None else WaitReason.BREAKER_OPEN
    return Hold(lane, reason, again, level.id, amount, short.available)


def spoken_for(demand: Demand, head: TaskView, lacking: list[Lack], *, now: float, late_after_s: float) -> list[Level]:
    """What a head that must wait keeps from those after it: what it lacks, and when it is very late all it needs.

    The latter ends the starvation of a task that needs two limits by others that need one of them each: the two
    would never be free together. A head that waits for something closed or out of reach keeps nothing that is open.
    """
    closed = [level for level, _, short in lacking if short.by in (ShortBy.CLOSED, ShortBy.BARRED)]
    if any(short.by is not ShortBy.IN_USE for _, _, short in lacking):
        return closed
    late = now - head.ready_at > late_after_s
    return demand.levels if late else [level for level, _, _ in lacking]
