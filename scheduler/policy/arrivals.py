"""Remembers how work arrived, and imagines how it may go on: by repeating stretches of the last fifteen minutes.

Bursts, lulls and lanes that move together are in the record, so they need no model. A stretch is chosen whose beginning
resembles the present.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from scheduler.policy.scene import Arrival
from scheduler.policy.types import DemandId, LaneKey, PoolId, PriorityClass, TenantId

BIN_S: Final = 5.0
BINS: Final = 180
CANDIDATES: Final = 12
"""Stretches of which the one is taken whose first bin followed one most like the last."""
AMOUNTS_KEPT: Final = 64
LANES_MAX: Final = 256
LANES_SAVED: Final = 32
AMOUNTS_SAVED: Final = 8
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
        if now - self.began_at >= BIN_S:
            self._forget()
        while now - self.began_at >= BIN_S:
            self.bins.append(self.current)
            self.current = {}
            self.began_at += BIN_S

    def _forget(self) -> None:
        """Lanes come and go, as runs do: what those asked for that are no longer in the record is dropped."""
        if len(self.amounts) > LANES_MAX:
            came = self.totals()
            self.amounts = {lane: known for lane, known in self.amounts.items() if lane in came}

    def as_json(self) -> dict[str, object]:
        """What `from_json` reads: the bins of the lanes to which most came, and a few of the amounts of each."""
        came = self.totals()
        lanes = sorted(came, key=lambda lane: (-came[lane], lane))[:LANES_SAVED]
        return {
            "began_at": self.began_at,
            "bins": len(self.bins),
            "lanes": [
                [
                    *lane,
                    [[n, bin_[lane]] for n, bin_ in enumerate(self.bins) if lane in bin_],
                    list(self.amounts.get(lane, ()))[-AMOUNTS_SAVED:],
                ]
                for lane in lanes
            ],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ArrivalRecord:
        """What `as_json` wrote."""
        record = cls(began_at=body["began_at"])
        record.bins.extend({} for _ in range(body["bins"]))
        for pool, priority, tenant, demand, bins, amounts in body["lanes"]:
            lane = LaneKey(PoolId(pool), PriorityClass(priority), TenantId(tenant), DemandId(demand))
            for n, tasks in bins:
                record.bins[n][lane] = tasks
            for each, expected_s in amounts:
                record.note_amounts(lane, tuple(each), expected_s)
        return record

    def surge(self, lane: LaneKey) -> int:
        """The most that came within two bins: how many may come at once."""
        counts = [bin_.get(lane, 0) for bin_ in (*self.bins, self.current)]
        return max((a + b for a, b in pairwise(counts)), default=sum(counts))

    def busiest(self) -> int:
        """The most that came to all lanes within two bins."""
        totals = [sum(bin_.values()) for bin_ in (*self.bins, self.current)]
        return max((a + b for a, b in pairwise(totals)), default=sum(totals))

    def totals(self) -> dict[LaneKey, int]:
        """How many came to each lane over the record."""
        found: dict[LaneKey, int] = defaultdict(int)
        for bin_ in (*self.bins, self.current):
            for lane, tasks in bin_.items():
                found[lane] += tasks
        return found

    def per_s(self, lane: LaneKey) -> float:
        """Mean arrivals per second over the record."""
        if not self.bins:
            return 0.0
        return sum(bin_.get(lane, 0) for bin_ in self.bins) / (len(self.bins) * BIN_S)

    def imagine(self, now: float, lanes: Container[LaneKey], *, draw: Callable[[], float]) -> Iterator[Arrival]:
        """Arrivals in some lanes from `now` on without end, by one stretch of the record.

        None while the record is short, and none if it has none of these lanes: whoever waits for the next one of a
        stream without any would wait for ever.
        """
        bins = list(self.bins)
        wanted = [{lane: tasks for lane, tasks in bin_.items() if lane in lanes} for bin_ in bins]
        if len(bins) <= 1 or not any(wanted):
            return
        totals = [sum(bin_.values()) for bin_ in bins]
        starts = [1 + int(draw() * (len(bins) - 1)) for _ in range(CANDIDATES)]
        at = min(starts, key=lambda n: abs(totals[n - 1] - totals[-1]))
        begins = now
        while True:
            yield from sorted(self._chunks(wanted[at % len(bins)], begins, draw), key=lambda a: a.at)
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
