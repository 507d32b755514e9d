"""Gives autoscaled pools the slots that their work needs: once per interval, by the leader, in one transaction.

A local pool has its slots at once. Of remote workers it only says how many slots there should be; whoever starts
workers reads it. Lowering never stops an attempt: it only means that nothing new starts until fewer run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from scheduler.policy.autoscale import Decision, PoolLoad, decide_slots
from scheduler.policy.fixed_starts import Booking, slots_spoken_for
from scheduler.policy.load import Counted, learn
from scheduler.policy.mix import Mix, NamedLimit, learn_mix, limit_uses
from scheduler.policy.scale_memory import ScaleMemory, Told
from scheduler.policy.scale_words import say_decision
from scheduler.policy.types import DemandId, ResourceId
from scheduler.services.changes import Author, record
from scheduler.store import autoscale as store
from scheduler.store import dispatch as dispatch_store
from scheduler.store import resources as resource_store

ACTOR: Final = "autoscaler"
TELL_EVERY_S: Final = 60.0
"""The audit hears of a pool's slots at most so often."""
REASON_CHARS_MAX: Final = 500
EARLY_S: Final = 0.05
"""A round that comes a little early counts: rounds are not exactly an interval apart."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A pool with what was seen of it and decided for it."""

    pool: store.ScaledPool
    load: PoolLoad
    decision: Decision
    memory: ScaleMemory


def autoscale() -> bool:
    """Look at every autoscaled pool whose interval is over and resize it; whether any local pool changed.

    1. Lock the pools, so that two leaders never both take a step. 2. Read what they have to do and what they need.
    3. Learn arrivals, service times and amounts. 4. Decide. 5. Keep and resize. 6. Tell the audit, sparingly.
    """
    with transaction.atomic():
        now, pools = store.lock_pools()
        due = [pool for pool in pools if _is_due(pool, now)]
        if not due:
            return False
        work = store.load_work([pool.id for pool in due])
        booked = store.load_booked({pool.id: pool.settings.reservation_horizon_s for pool in due})
        limits = {row.view.id: NamedLimit(row.name, row.view) for row in resource_store.load()}
        chosen = [_choose(pool, work[pool.id], booked.get(pool.id, ()), limits, now=now) for pool in due]
        changed = store.store([_kept(each) for each in chosen])
        for each in chosen:
            _tell(each)
        return bool(changed)


def _is_due(pool: store.ScaledPool, now: float) -> bool:
    counted = pool.memory.learned.counted
    return counted is None or not 0.0 <= now - counted.at < pool.settings.interval_s - EARLY_S


def _choose(
    pool: store.ScaledPool,
    work: store.Work,
    booked: Sequence[Booking],
    limits: Mapping[ResourceId, NamedLimit],
    *,
    now: float,
) -> _Chosen:
    before = pool.memory
    then = before.learned.counted
    counted = Counted(now, work.ready, work.started, work.running, work.age_s)
    learned = learn(before.learned, counted, interval_s=pool.settings.interval_s)
    mix = learn_mix(before.mix, work.by_demand, elapsed_s=0.0 if then is None else now - then.at)
    load = PoolLoad(
        now=now,
        slots=pool.slots,
        slots_min=pool.slots_min,
        slots_max=pool.slots_max,
        service_s=learned.service_s(pool.duration_default_s),
        waiting=work.ready,
        arrivals_per_s=learned.arrivals_per_s,
        slo_s=pool.slo_s,
        limits=limit_uses(mix, _needs(mix), limits),
        reserved=slots_spoken_for(booked, now=now),
        paused=pool.paused,
    )
    decision = decide_slots(load, pool.settings, before.track)
    told = before.told or Told(pool.slots, now - TELL_EVERY_S)
    return _Chosen(pool, load, decision, ScaleMemory(learned, decision.track, mix, _told(told, decision, now)))


def _needs(mix: Mix) -> dict[DemandId, tuple[ResourceId, ...]]:
    return {demand: view.resources for demand, view in dispatch_store.load_demands(sorted(mix)).items()}


def _told(told: Told, decision: Decision, now: float) -> Told:
    """What the audit knows after this decision. A time ahead of now was told by a clock that has gone back since."""
    if decision.desired != told.slots and not 0.0 <= now - told.at < TELL_EVERY_S:
        return Told(decision.desired, now)
    return told


def _kept(each: _Chosen) -> store.Decided:
    return store.Decided(each.pool.id, each.decision.desired, _view(each), each.memory)


def _view(each: _Chosen) -> dict[str, Any]:
    """What people and machines are shown. Plain JSON values."""
    load, decision = each.load, each.decision
    ceiling = decision.ceiling
    return {
        "wanted": decision.wanted,
        "demand": round(decision.demand, 3),
        "needs": [
            {"kind": n.kind.value, "priority": n.priority.label if n.priority is not None else None, "slots": n.slots}
            for n in decision.needs
        ],
        "reserved": load.reserved,
        "ceiling": None if ceiling is None else {"resource": ceiling.limit.name, "slots": round(ceiling.slots, 3)},
        "bound": ceiling is not None and ceiling.most < decision.demand,
        "pace": decision.pace.value,
        "arrivals_per_s": round(sum(load.arrivals_per_s), 3),
        "service_s": round(load.service_s, 4),
        "says": list(say_decision(load, each.pool.settings, decision)),
    }


def _tell(each: _Chosen) -> None:
    before, after = each.pool.memory.told, each.memory.told
    if after is None or before == after or after.at != each.load.now:
        return
    said = " ".join(say_decision(each.load, each.pool.settings, each.decision))[:REASON_CHARS_MAX]
    slots_before = each.pool.slots if before is None else before.slots
    record(
        Author(ACTOR, "system", said),
        "pool.scale",
        f"pool:{each.pool.name}",
        before={"slots": slots_before},
        after={"slots": each.decision.desired},
    )
