"""Reads what autoscaled pools have to do, and keeps what was decided for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.fixed_starts import HELD_AFTER_S, Booking
from scheduler.policy.mix import Part
from scheduler.policy.scale_memory import ScaleMemory, read_memory, write_memory
from scheduler.policy.types import DemandId, PoolId, PriorityClass
from scheduler.store import queries

_SQL: Final = queries.load("autoscale.sql")

SAMPLE_WIDTH: Final = 20
BOOKED_MAX: Final = 10_000
"""Bookings of one pool that are looked at. A pool cannot have as many slots."""


@dataclass(frozen=True, slots=True)
class ScaledPool:
    """An autoscaled pool, locked. `slots` is what it has: what was last desired of remote workers."""

    id: PoolId
    name: str
    executor: str
    slots_min: int
    slots_max: int
    slots: int
    duration_default_s: float
    paused: bool
    slo_s: dict[PriorityClass, float]
    settings: AutoscaleSettings
    memory: ScaleMemory


@dataclass(frozen=True, slots=True)
class Work:
    """A pool's work: ready tasks and attempts ever started by class, what runs with its summed age, all by demand."""

    ready: tuple[float, ...]
    started: tuple[float, ...]
    running: float
    age_s: float
    by_demand: dict[DemandId, Part]


@dataclass(frozen=True, slots=True)
class Decided:
    """What to keep of one decision. `view` is shown as it is."""

    pool: PoolId
    desired: int
    view: dict[str, Any]
    memory: ScaleMemory


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """The newest decision for a pool; `as_of` in Unix seconds."""

    desired: int
    as_of: float
    view: dict[str, Any]


def lock_pools() -> tuple[float, list[ScaledPool]]:
    """The time and all autoscaled pools that nobody else decides about, locked until the transaction ends."""
    queries.run(_SQL["have_scales"])
    rows = queries.fetch(_SQL["lock_scaled_pools"])
    return (rows[0][0] if rows else 0.0), [_pool(row) for row in rows]


def _pool(row: queries.Row) -> ScaledPool:
    _, pool, name, executor, slots_min, slots_max, slots, duration_s, paused, slo, autoscale, desired, memory = row
    remote = executor == "remote" and desired is not None
    return ScaledPool(
        id=PoolId(pool),
        name=name,
        executor=executor,
        slots_min=slots_min,
        slots_max=slots_max,
        slots=min(max(desired, slots_min), slots_max) if remote else slots,
        duration_default_s=duration_s,
        paused=paused,
        slo_s={PriorityClass[label.upper()]: seconds for label, seconds in orjson.loads(slo or "{}").items()},
        settings=AutoscaleSettings(**orjson.loads(autoscale)),
        memory=read_memory(None if memory is None else orjson.loads(memory)),
    )


def load_work(pools: Sequence[PoolId]) -> dict[PoolId, Work]:
    """What these pools have to do, by pool."""
    params = {"pools": queries.array(pools)}
    counts: dict[tuple[PoolId, str], list[float]] = defaultdict(lambda: [0.0] * len(PriorityClass))
    tasks: dict[tuple[PoolId, DemandId], float] = defaultdict(float)
    for pool, priority, demand, counter, n in queries.fetch(_SQL["read_work"], params):
        counts[pool, counter][priority] += float(n)
        if counter == "ready" and n > 0:
            tasks[pool, demand] += float(n)
    running: dict[PoolId, float] = defaultdict(float)
    age_s: dict[PoolId, float] = defaultdict(float)
    amounts: dict[tuple[PoolId, DemandId], tuple[float, ...]] = {}
    for pool, demand, leases, summed_s, sums in queries.fetch(_SQL["read_in_flight"], params):
        running[pool] += leases
        age_s[pool] += summed_s
        tasks[pool, demand] += leases
        amounts[pool, demand] = tuple(total / leases for total in sums)
    amounts |= _sampled([each for each in tasks if each not in amounts])
    by_demand: dict[PoolId, dict[DemandId, Part]] = defaultdict(dict)
    for (pool, demand), n in tasks.items():
        by_demand[pool][demand] = Part(n, amounts.get((pool, demand), ()))
    return {
        pool: Work(
            tuple(counts[pool, "ready"]),
            tuple(counts[pool, "started"]),
            running[pool],
            age_s[pool],
            by_demand[pool],
        )
        for pool in pools
    }


def _sampled(wanted: Sequence[tuple[PoolId, DemandId]]) -> dict[tuple[PoolId, DemandId], tuple[float, ...]]:
    """The mean amounts of the first tasks that wait with these demands."""
    if not wanted:
        return {}
    params = {
        "pools": queries.array(pool for pool, _ in wanted),
        "demands": queries.array(demand for _, demand in wanted),
        "width": SAMPLE_WIDTH,
    }
    found: dict[tuple[PoolId, DemandId], list[list[float]]] = defaultdict(list)
    for pool, demand, asked in queries.fetch(_SQL["sample_amounts"], params):
        found[pool, demand].append(asked)
    return {
        each: tuple(sum(column) / len(column) for column in zip(*asked, strict=True)) for each, asked in found.items()
    }


def load_booked(horizons_s: Mapping[PoolId, float]) -> dict[PoolId, list[Booking]]:
    """What fixed starts that have yet to start have booked, by pool, as far ahead as each pool looks."""
    params = {
        "pools": queries.array(horizons_s),
        "horizons_s": queries.array(horizons_s.values()),
        "held_after_s": HELD_AFTER_S,
        "rows_max": BOOKED_MAX,
    }
    booked: dict[PoolId, list[Booking]] = defaultdict(list)
    for pool, starts_at, ends_at in queries.fetch(_SQL["read_booked"], params):
        booked[pool].append(Booking(starts_at, ends_at))
    return booked


def store(decided: Sequence[Decided]) -> set[PoolId]:
    """Keep decisions and resize local pools; the pools that changed."""
    params = {
        "pools": queries.array(d.pool for d in decided),
        "desired": queries.array(d.desired for d in decided),
        "views": queries.text_array(orjson.dumps(d.view).decode() for d in decided),
        "memories": queries.text_array(orjson.dumps(write_memory(d.memory)).decode() for d in decided),
    }
    return {PoolId(pool) for (pool,) in queries.fetch(_SQL["store_scales"], params)}


def load() -> dict[PoolId, ScaleRow]:
    """The newest decisions, by pool."""
    return {
        PoolId(pool): ScaleRow(desired, as_of, orjson.loads(view))
        for pool, desired, as_of, view in queries.fetch(_SQL["read_scales"])
    }
