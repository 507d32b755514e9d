"""What past work teaches: how long attempts take and how they fail, how work arrives, and how good forecasts were.

How long attempts take is learned twice: in seconds, and as multiples of what was expected of them. The one that varies
less is believed: an expectation that says something about a task is used, one that does not does no harm.

One value for production, which keeps it in a row, and for virtual time, which keeps it in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scheduler.policy.arrivals import ArrivalRecord
from scheduler.policy.calibration import Track
from scheduler.policy.durations import HALF_LIFE_S, Durations
from scheduler.policy.retry import Failure
from scheduler.policy.settlement import throttled_for_s
from scheduler.policy.types import PoolId, PriorityClass

STARTS_MIN: Final = 20
"""With fewer recent starts in a pool there is no forecast but 'insufficient data'."""

Seat = tuple[PoolId, PriorityClass]

EXPECTED_MIN_S: Final = 0.001
CLEARLY: Final = 0.1
"""A logarithm: about one bin of a histogram."""


class Ended(NamedTuple):
    """An attempt that has ended: how long it ran, what was expected, and why it failed."""

    took_s: float
    expected_s: float
    failure: Failure | None = None


@dataclass(slots=True)
class Failing:
    """How a pool's attempts fail: fading counts as of `at`, and how long throttled ones closed their limit in all."""

    attempts: float = 0.0
    failed: float = 0.0
    throttled: float = 0.0
    closed_s: float = 0.0
    at: float = 0.0

    def fade(self, now: float) -> None:
        """Halve what is known in ten minutes."""
        kept = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE_S)
        self.attempts, self.failed = self.attempts * kept, self.failed * kept
        self.throttled, self.closed_s = self.throttled * kept, self.closed_s * kept
        self.at = now

    def learn(self, failure: Failure | None) -> None:
        """Add one attempt."""
        self.attempts += 1.0
        if failure is None:
            return
        closed_s = throttled_for_s(failure)
        if closed_s is None:
            self.failed += 1.0
        else:
            self.throttled += 1.0
            self.closed_s += closed_s


@dataclass(slots=True)
class Learned:
    """All of it. `durations` in seconds, `multiples` of what was expected.

    `tracks` is how forecasts of a pool's class compared with what happened.
    """

    durations: dict[PoolId, Durations] = field(default_factory=dict)
    multiples: dict[PoolId, Durations] = field(default_factory=dict)
    failing: dict[PoolId, Failing] = field(default_factory=dict)
    arrivals: ArrivalRecord = field(default_factory=ArrivalRecord)
    tracks: dict[Seat, Track] = field(default_factory=dict)

    def learn(self, pool: PoolId, attempts: Iterable[Ended], *, now: float) -> None:
        """Add a pool's attempts that have ended. Throttled ones say nothing about durations."""
        known = list(attempts)
        took = [each for each in known if each.failure is None or throttled_for_s(each.failure) is None]
        self.durations.setdefault(pool, Durations(at=now)).learn((each.took_s for each in took), now=now)
        multiples = (each.took_s / max(EXPECTED_MIN_S, each.expected_s) for each in took)
        self.multiples.setdefault(pool, Durations(at=now)).learn(multiples, now=now)
        failing = self.failing.setdefault(pool, Failing(at=now))
        failing.fade(now)
        for each in known:
            failing.learn(each.failure)

    def expects_well(self, pool: PoolId) -> bool:
        """Whether what is expected of a pool's tasks says more about them than that they are of this pool.

        Clearly more: where all take about as long, what the histograms' bins make of it decides nothing.
        """
        multiples, durations = self.multiples.get(pool), self.durations.get(pool)
        return multiples is not None and durations is not None and multiples.spread < durations.spread - CLEARLY

    def is_enough(self, pool: PoolId) -> bool:
        """Whether enough attempts were seen lately to say anything."""
        failing = self.failing.get(pool)
        return failing is not None and failing.attempts >= STARTS_MIN

    def as_json(self) -> dict[str, object]:
        """What `from_json` reads. Arrivals are left out: their record has a form of its own."""
        return {
            "durations": [[pool, d.as_json()] for pool, d in self.durations.items()],
            "multiples": [[pool, d.as_json()] for pool, d in self.multiples.items()],
            "failing": [
                [pool, f.attempts, f.failed, f.throttled, f.closed_s, f.at] for pool, f in self.failing.items()
            ],
            "tracks": [
                [pool, int(p), [[round(figure, 3) for figure in lesson] for lesson in t.lessons]]
                for (pool, p), t in self.tracks.items()
            ],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Learned:
        """What `as_json` wrote."""
        return cls(
            durations={PoolId(pool): Durations.from_json(row) for pool, row in body["durations"]},
            multiples={PoolId(pool): Durations.from_json(row) for pool, row in body["multiples"]},
            failing={PoolId(pool): Failing(*rest) for pool, *rest in body["failing"]},
            tracks={(PoolId(pool), PriorityClass(p)): Track.of(lessons) for pool, p, lessons in body["tracks"]},
        )

    def track(self, pool: PoolId, priority: PriorityClass) -> Track:
        """How forecasts of this pool and class came out."""
        return self.tracks.setdefault((pool, priority), Track())
