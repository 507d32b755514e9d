"""Decides about fixed starts: whether one can be promised, when a slot is held for it, what missing it means.

A delayed task (`start_in`, `start_at`) is a fixed start if it says what lateness it bears (`tolerance`) or what is to
happen when it is late (`on_miss`); else it only begins to wait then, and reserves nothing. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush
from math import floor
from typing import Final

TOLERANCE_DEFAULT_S: Final = 1.0
HOLD_MIN_S: Final = 5.0
HOLD_MAX_S: Final = 60.0
SHORTEST_S: Final = 0.001
"""What is expected to take no time needs its slot at least so long."""
HELD_AFTER_S: Final = 60.0
"""A fixed start that is this late is not put before everything else any more: something other than a slot stops it."""


class OnMiss(StrEnum):
    """What becomes of a fixed start that did not start within its tolerance."""

    RUN_LATE = "run_late"
    SKIP = "skip"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Booking:
    """Capacity for one task: one slot from `starts_at` until `ends_at`."""

    starts_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class FixedStart:
    """A start that is promised. `held_from`: when a slot begins to be kept free for it."""

    booking: Booking
    held_from: float
    tolerance_s: float
    on_miss: OnMiss

    @property
    def start_by(self) -> float | None:
        """After this it must not start; None when it may run late."""
        return None if self.on_miss is OnMiss.RUN_LATE else self.latest_start

    @property
    def latest_start(self) -> float:
        """When it begins to be late."""
        return self.booking.starts_at + self.tolerance_s


def fix(
    due_at: float, *, expected_s: float, pool_duration_s: float, tolerance_s: float | None, on_miss: OnMiss | None
) -> FixedStart:
    """The promise for a start at `due_at`. A slot is held for as long ahead as two tasks of the pool usually take."""
    ahead_s = min(HOLD_MAX_S, max(HOLD_MIN_S, 2.0 * pool_duration_s))
    return FixedStart(
        booking=Booking(due_at, due_at + expected_s),
        held_from=due_at - ahead_s,
        tolerance_s=TOLERANCE_DEFAULT_S if tolerance_s is None else tolerance_s,
        on_miss=on_miss or OnMiss.RUN_LATE,
    )


def reservable_slots(slots_max: int, fraction: float) -> int:
    """How many slots of a pool may be promised at once: at least one."""
    return max(1, floor(slots_max * fraction))


def has_room(wanted: Booking, booked: Iterable[Booking], *, slots: int) -> bool:
    """Whether a slot is left throughout, of `slots` that may be booked at once."""
    return _first_full(wanted, booked, slots) is None


def first_room(wanted: Booking, booked: Sequence[Booking], *, slots: int) -> float:
    """When the same booking would fit at the earliest, not before it was wanted."""
    length_s = wanted.ends_at - wanted.starts_at
    start = wanted.starts_at
    while (free_at := _first_full(Booking(start, start + length_s), booked, slots)) is not None:
        start = free_at
    return start


def slots_spoken_for(booked: Iterable[Booking], *, now: float) -> int:
    """How many slots bookings that have yet to start need at once. One whose time has come needs its slot now."""
    delayed = [(max(now, b.starts_at), b.ends_at - b.starts_at) for b in booked]
    changes = [change for at, length_s in delayed for change in ((at, 1), (at + max(length_s, SHORTEST_S), -1))]
    busy = most = 0
    for _, step in sorted(changes):
        busy += step
        most = max(most, busy)
    return most


def _first_full(wanted: Booking, booked: Iterable[Booking], slots: int) -> float | None:
    """When a slot is free again after the first moment of `wanted` at which none is; None when one always is."""
    ends: list[float] = []
    rivals = (b for b in booked if b.starts_at < wanted.ends_at and b.ends_at > wanted.starts_at)
    for booking in sorted(rivals, key=lambda b: b.starts_at):
        while ends and ends[0] <= booking.starts_at:
            heappop(ends)
        heappush(ends, booking.ends_at)
        if len(ends) >= slots:
            return ends[0]
    return None
