"""Remembers how work arrived, and imagines how it may go on: by repeating stretches of the last fifteen minutes.

Bursts, lulls and lanes that move together are in the record, so they need no model. A stretch is chosen whose beginning
resembles the present.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from scheduler.policy.scene import Arrival
from scheduler.policy.types import LaneKey

BIN_S: Final = 5.0
BINS: Final = 180
LIKE_THE_PRESENT: Final = 2
"""Bins that are compared with the present."""
CANDIDATES: Final = 3
AMOUNTS_KEPT: Final = 64
CHUNKS_MAX: Final = 8
"""Arrivals of one lane in one bin come in at most this many pieces."""

Amounts = tuple[float, ...]


@dataclass(slots=True)
class ArrivalRecord:
    """Tasks that became ready by lane, in bins of five seconds, newest last; and what some of them asked for."""

    began_at: float | None = None
    bins: deque[dict[LaneKey, int]] = field(default_factory=lambda: deque(maxlen=BINS))
    current: dict[LaneKey, int] = field(default_factory=dict)
    amounts: dict[LaneKey, deque[tuple[Amounts, float]]] = field(default_factory=dict)

    def note(self, lane: LaneKey, tasks: int) -> None:
        """Tasks have become ready in a lane since the last `turn`."""
        self.current[lane] = self.current.get(lane, 0) + tasks

    def note_amounts(self, lane: LaneKey, amounts: Amounts, expected_s: float) -> None:
        """One of them asked for this much, and is expected to take that long."""
        self.amounts.setdefault(lane, deque(maxlen=AMOUNTS_KEPT)).append((amounts, expected_s))

    def turn(self, now: float) -> None:
        """Close the bins that have ended. Silent times are empty bins; a clock that went back ends none."""
        if self.began_at is None or now - self.began_at > BIN_S * BINS:
            self.began_at = now
            self.current = {}
            return
        while now - self.began_at >= BIN_S:
            self.bins.append(self.current)
            self.current = {}
            self.began_at += BIN_S

    def surge(self, lane: LaneKey) -> int:
        """The most that came within two bins: how many may come at once."""
        counts = [bin_.get(lane, 0) for bin_ in (*self.bins, self.current)]
        return max((a + b for a, b in pairwise(counts)), default=sum(counts))

    def per_s(self, lane: LaneKey) -> float:
        """Mean arrivals per second over the record."""
        if not self.bins:
            return 0.0
        return sum(bin_.get(lane, 0) for bin_ in self.bins) / (len(self.bins) * BIN_S)

    def imagine(self, now: float, *, draw: Callable[[], float]) -> Iterator[Arrival]:
        """Arrivals from `now` on without end, by one stretch of the record. None while the record is short."""
        bins = list(self.bins)
        if len(bins) <= LIKE_THE_PRESENT or not any(bins):
            return
        totals = [sum(bin_.values()) for bin_ in bins]
        present = sum(totals[-LIKE_THE_PRESENT:])
        starts = [LIKE_THE_PRESENT + int(draw() * (len(bins) - LIKE_THE_PRESENT)) for _ in range(CANDIDATES)]
        at = min(starts, key=lambda n: abs(sum(totals[n - LIKE_THE_PRESENT : n]) - present))
        begins = now
        while True:
            yield from sorted(self._chunks(bins[at % len(bins)], begins, draw), key=lambda a: a.at)
            at += 1
            begins += BIN_S

    def _chunks(self, bin_: Mapping[LaneKey, int], begins: float, draw: Callable[[], float]) -> Iterator[Arrival]:
        for lane, tasks in bin_.items():
            chunks = min(tasks, CHUNKS_MAX)
            for n in range(chunks):
                number = tasks // chunks + (n < tasks % chunks)
                amounts, expected_s = self.typical(lane, draw=draw)
                yield Arrival(begins + draw() * BIN_S, lane, amounts, expected_s, expected_s, number=number)

    def typical(self, lane: LaneKey, *, draw: Callable[[], float]) -> tuple[Amounts, float]:
        """What a task of this lane may ask for, and how long it is expected to take."""
        known = self.amounts.get(lane)
        return known[int(draw() * len(known))] if known else ((), 1.0)
