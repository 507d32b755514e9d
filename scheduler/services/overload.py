"""Keeps the overload level of every pool: the leader's step each second, in the transaction of the picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp
from typing import Final

from scheduler.policy.overload import Overload, Pace, degrades, frozen, next_overload, predicted_wait_s, pressure
from scheduler.policy.types import PoolId, PriorityClass
from scheduler.store import bounds as store

MEMORY_S: Final = 10.0
"""Rates of starts are averaged over about this long."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in one pool: ready tasks and the age of the oldest by class (seconds), and starts per second now.

    `forecast_s` is the typical wait that is forecast for a task submitted now, by class, as far as there is a forecast.
    """

    ready: Mapping[PriorityClass, int]
    oldest_s: Mapping[PriorityClass, float]
    started_per_s: float
    forecast_s: Mapping[PriorityClass, float] = field(default_factory=dict)


def judge_pools(queues: Mapping[PoolId, Queue], *, pace: Pace, now: float) -> dict[PoolId, store.PoolStateRow]:
    """Decide and keep the level of each of these pools, in the caller's transaction."""
    rows = {
        load.pool: _judge(load, queues[load.pool], pace=pace, now=now)
        for load in store.load_pool_loads()
        if load.pool in queues
    }
    store.write_pool_states(list(rows.values()))
    return rows


def _judge(load: store.PoolLoad, queue: Queue, *, pace: Pace, now: float) -> store.PoolStateRow:
    started_per_s = _averaged(load, queue.started_per_s, now)
    waits = waits_s(queue, started_per_s=started_per_s)
    if load.paused and load.slo_s:
        overload = frozen(load.overload, now=now)
    else:
        # Who has no objectives any more is not overloaded any more.
        kept = load.overload if load.slo_s or load.overload is None or load.overload.level == 0 else None
        overload = next_overload(kept, pressure(waits, load.slo_s), pace=pace, now=now)
    worst = max(load.slo_s, key=lambda p: waits[p] / load.slo_s[p], default=None)
    return store.PoolStateRow(
        pool=load.pool,
        overload=overload,
        degrades=degrades(overload.level, allowed=load.allows_degraded),
        predicted_s=None if worst is None else waits[worst],
        started_per_s=started_per_s,
    )


def waits_s(queue: Queue, *, started_per_s: float) -> dict[PriorityClass, float]:
    """The predicted wait of a task submitted now, by class, in seconds: forecast, else what the queue itself tells."""
    waits = {}
    ahead = 0
    for priority in PriorityClass:
        ahead += queue.ready.get(priority, 0)
        oldest_s = queue.oldest_s.get(priority)
        queued_s = predicted_wait_s(oldest_s=oldest_s, ahead=ahead, started_per_s=started_per_s)
        waits[priority] = queue.forecast_s.get(priority, queued_s)
    return waits


def _averaged(load: store.PoolLoad, started_per_s: float, now: float) -> float:
    before: Overload | None = load.overload
    if before is None:
        return started_per_s
    weight = 1.0 - exp(-max(0.0, now - before.seen_at) / MEMORY_S)
    return load.started_per_s + weight * (started_per_s - load.started_per_s)
