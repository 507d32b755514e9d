"""Decides how many slots a pool should have: as many as its work needs, no more than its limits can feed, gently down.

Demand is the largest of three needs, and what fixed starts reserve: arrivals at a comfortable utilization, the backlog
drained in time, and every class's p90 wait within its objective. A limit that the work needs feeds only
`throughput × service time ÷ amount` slots (Little's law); more would wait inside or be refused. Going up is quick,
going down is slow and never below what was needed lately. It must never look at a clock or at a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil, floor
from typing import Final, NamedTuple

from scheduler.policy.load import NONE_BY_CLASS, ByClass
from scheduler.policy.queueing import Queue, fewest_slots
from scheduler.policy.types import PriorityClass

NOTHING: Final = 0.01
"""Less demand than this part of a slot is none: the pool may go to zero."""
ABOVE_CEILING: Final = 1.1
STEP_UP_RATIO: Final = 1.0
PEAKS_MAX: Final = 60
FED_MAX: Final = 1e9
"""A limit that feeds more slots than this is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscaleSettings:
    """How a pool follows its demand. Times in seconds; steps in slots."""

    interval_s: float = 1.0
    target_utilization: float = 0.75
    drain_time_s: float = 30.0
    reservation_horizon_s: float = 60.0
    stabilization_window_s: float = 60.0
    cooldown_s: float = 30.0
    step_up_abs_max: int = 4
    step_down_max: int = 1


class LimitUse(NamedTuple):
    """A limit that the pool's work needs.

    `per_s` is what a bucket hands out; None for a semaphore, of which `permits` may be held. A task takes `amount`;
    `share` is the part of the pool's work that needs the limit at all.
    """

    name: str
    amount: float
    share: float
    per_s: float | None = None
    permits: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLoad:
    """A pool and its work at one moment. `slo_s` is the wait that a class may have, `reserved` slots are spoken for.

    A paused pool needs nothing, whatever waits: nothing would start.
    """

    now: float
    slots: int
    slots_min: int
    slots_max: int
    service_s: float
    waiting: ByClass = NONE_BY_CLASS
    arrivals_per_s: ByClass = NONE_BY_CLASS
    slo_s: Mapping[PriorityClass, float] = field(default_factory=dict)
    limits: tuple[LimitUse, ...] = ()
    reserved: int = 0
    paused: bool = False


class Need(NamedTuple):
    """One reason for slots, and how many it asks for. `priority` is the class whose objective it is."""

    kind: NeedKind
    slots: float
    priority: PriorityClass | None = None


class NeedKind(StrEnum):
    """What slots are needed for."""

    ARRIVALS = "arrivals"
    BACKLOG = "backlog"
    OBJECTIVE = "slo"


class Ceiling(NamedTuple):
    """The limit that feeds the fewest slots, and how many."""

    limit: LimitUse
    slots: float

    @property
    def most(self) -> int:
        """Whole slots that are worth having: enough to use the limit up, and a tenth for the unevenness of work."""
        return max(ceil(self.slots - NOTHING), floor(self.slots * ABOVE_CEILING))


class Pace(StrEnum):
    """Why the pool does not go to what is wanted at once, or that it does."""

    THERE = "there"
    UP = "up"
    STEP_UP = "step_up"
    DOWN = "down"
    COOLING = "cooling"
    LATELY = "lately"


class Peak(NamedTuple):
    """How many slots were wanted at a time."""

    at: float
    slots: int


@dataclass(frozen=True, slots=True)
class Track:
    """What the next decision has to remember: the highest wishes of the window, falling, and the last step down."""

    peaks: tuple[Peak, ...] = ()
    lowered_at: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """`desired` slots from now on, on the way to `wanted`; `demand` is what the work asks for before any bound."""

    desired: int
    wanted: int
    demand: float
    needs: tuple[Need, ...]
    ceiling: Ceiling | None
    pace: Pace
    track: Track

    @property
    def largest(self) -> Need:
        """The need that decides."""
        return max(self.needs, key=lambda need: need.slots)


def decide_slots(load: PoolLoad, settings: AutoscaleSettings, before: Track) -> Decision:
    """How many slots the pool should have. A clock that went back shortens no wait and forgets no peak."""
    needs = (_for_arrivals(load, settings), _for_backlog(load, settings), *_for_objectives(load))
    demand = 0.0 if load.paused else max(need.slots for need in needs) + load.reserved
    ceiling = _ceiling(load, demand)
    bounded = ceil(demand) if demand >= NOTHING else 0
    if ceiling is not None:
        bounded = min(bounded, ceiling.most)
    wanted = min(max(bounded, load.slots_min), load.slots_max)
    track = _remember(before, Peak(load.now, wanted), settings.stabilization_window_s)
    desired, pace = _step(load, settings, wanted, track)
    if pace is Pace.DOWN:
        track = Track(track.peaks, load.now)
    return Decision(desired, wanted, demand, needs, ceiling, pace, track)


def _for_arrivals(load: PoolLoad, settings: AutoscaleSettings) -> Need:
    return Need(NeedKind.ARRIVALS, sum(load.arrivals_per_s) * load.service_s / settings.target_utilization)


def _for_backlog(load: PoolLoad, settings: AutoscaleSettings) -> Need:
    return Need(NeedKind.BACKLOG, sum(load.waiting) * load.service_s / settings.drain_time_s)


def _for_objectives(load: PoolLoad) -> list[Need]:
    """A class without work or arrivals asks for nothing: it must be possible to go to zero."""
    return [
        Need(NeedKind.OBJECTIVE, fewest, priority)
        for priority, slo_s in sorted(load.slo_s.items())
        if load.waiting[priority] or load.arrivals_per_s[priority] * load.service_s >= NOTHING
        for fewest in [_fewest(load, priority, slo_s)]
    ]


def _fewest(load: PoolLoad, priority: PriorityClass, slo_s: float) -> int:
    passing_per_s = sum(load.arrivals_per_s[:priority])
    queue = Queue(
        ahead=sum(load.waiting[: priority + 1]),
        passing_per_s=passing_per_s,
        load_per_s=passing_per_s + load.arrivals_per_s[priority],
        service_s=load.service_s,
    )
    fewest = fewest_slots(queue, slo_s, slots_max=load.slots_max)
    return load.slots_max if fewest is None else fewest


def _ceiling(load: PoolLoad, demand: float) -> Ceiling | None:
    """The tightest limit. Work that does not need it is not bounded by it."""
    found = [
        Ceiling(use, _feeds(use, load.service_s) + (1.0 - use.share) * demand)
        for use in load.limits
        if use.amount > 0.0
    ]
    return min(found, key=lambda ceiling: ceiling.slots, default=None)


def _feeds(use: LimitUse, service_s: float) -> float:
    return min(FED_MAX, (use.permits if use.per_s is None else use.per_s * service_s) / use.amount)


def _remember(before: Track, wish: Peak, window_s: float) -> Track:
    """Keep what can still be the highest wish of the window: each peak is higher than all after it.

    Times are rounded up, so that there are about PEAKS_MAX of them at most and each is remembered long enough.
    """
    grain_s = window_s / PEAKS_MAX
    latest = ceil(wish.at / grain_s) * grain_s
    higher = [Peak(min(p.at, latest), p.slots) for p in before.peaks if p.at > wish.at - window_s]
    kept = [peak for peak in higher if peak.slots > wish.slots]
    if not kept or kept[-1].at < latest:
        kept.append(Peak(latest, wish.slots))
    lowered_at = None if before.lowered_at is None else min(before.lowered_at, wish.at)
    return Track(tuple(kept), lowered_at)


def _step(load: PoolLoad, settings: AutoscaleSettings, wanted: int, track: Track) -> tuple[int, Pace]:
    slots = load.slots
    if wanted > slots:
        most = slots + max(settings.step_up_abs_max, int(slots * STEP_UP_RATIO))
        return (wanted, Pace.UP) if wanted <= most else (most, Pace.STEP_UP)
    lowest = min(track.peaks[0].slots, load.slots_max)
    if slots <= wanted:
        return slots, Pace.THERE
    if slots <= lowest:
        return slots, Pace.LATELY
    if track.lowered_at is not None and load.now - track.lowered_at < settings.cooldown_s:
        return slots, Pace.COOLING
    return max(lowest, slots - settings.step_down_max), Pace.DOWN
