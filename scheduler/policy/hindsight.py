"""Judges forecasts in virtual time: walks a world, foretells with what was known then, and compares with what came.

    walk = Hindsight(scene, arrivals, draw=rng.random, imagine=other_rng.random, serve=serve)
    walk.play()
    report(walk.outcomes)          # every arrival that had a forecast
    walk.run.started               # and the run itself

The forecast is made every second or so, as in production, and is as old as it is when a task comes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from scheduler.policy.calibration import Band, Outcome
from scheduler.policy.forecast import Forecast, foretell
from scheduler.policy.forward import Forward, Serve, serve_as_told
from scheduler.policy.learned import Ended, Learned, Seat
from scheduler.policy.scene import Arrival, Scene
from scheduler.policy.types import LaneKey, PoolId

EVERY_S: Final = 2.0
LEARNT_EVERY_S: Final = 2.0


class Hindsight:
    """One walk. `draw` is the world's chance, `imagine` that of the forecasts; they must not know each other."""

    def __init__(
        self,
        scene: Scene,
        arrivals: Iterable[Arrival],
        *,
        draw: Callable[[], float],
        imagine: Callable[[], float],
        serve: Serve = serve_as_told,
        every_s: float = EVERY_S,
    ) -> None:
        self.run = Forward(scene, draw=draw, serve=serve)
        self.learned = Learned()
        self.outcomes: list[Outcome] = []
        self.forecasts = 0
        self._arrivals, self._imagine, self._every_s = arrivals, imagine, every_s
        self._forecast = Forecast(scene.now, {}, {}, {}, {})
        self._joined: dict[LaneKey, int] = defaultdict(int)
        self._said: dict[int, tuple[Band, Band]] = {}
        self._tried_read = self._started_read = 0
        self._next_at = scene.now + every_s
        self._last_learnt: dict[Seat, float] = {}

    def play(self) -> None:
        """Walk to the end of all work."""
        for arrival in self._arrivals:
            while self._next_at <= arrival.at:
                self.run.advance(self._next_at)
                self._look()
                self._next_at += self._every_s
            self.run.advance(arrival.at)
            self._take(arrival)
        self.run.advance(inf)
        self._learn()

    def _take(self, arrival: Arrival) -> None:
        raw = self._forecast.raw_wait(arrival.lane, joined=self._joined[arrival.lane], now=arrival.at)
        self._joined[arrival.lane] += 1
        self.learned.arrivals.note(arrival.lane, 1)
        self.learned.arrivals.note_amounts(arrival.lane, arrival.amounts, arrival.expected_s)
        self.run.arrive(arrival)
        if raw is not None:
            track = self.learned.track(arrival.lane.pool, arrival.lane.priority)
            self._said[self.run.last_id] = (raw, track.corrected(raw))

    def _look(self) -> None:
        self.learned.arrivals.turn(self.run.now)
        self._learn()
        self._forecast = foretell(self.run.scene(), self.learned, draw=self._imagine)
        self._joined.clear()
        self.forecasts += 1

    def _learn(self) -> None:
        run = self.run
        ended: dict[PoolId, list[Ended]] = defaultdict(list)
        for tried in run.tried[self._tried_read :]:
            job, took_s = tried.job, tried.ended_at - tried.started_at
            ended[job.lane.pool].append(Ended(took_s, job.expected_s / job.count, tried.failure))
        self._tried_read = len(run.tried)
        for pool, attempts in ended.items():
            self.learned.learn(pool, attempts, now=run.now)
        for job in run.started[self._started_read :]:
            said = self._said.pop(job.id, None)
            if said is not None:
                wait_s = job.wait_s or 0.0
                self.outcomes.append(Outcome(said[1], wait_s))
                self._teach((job.lane.pool, job.lane.priority), said[0], wait_s, job.started_at or 0.0)
        self._started_read = len(run.started)

    def _teach(self, seat: Seat, raw: Band, wait_s: float, at: float) -> None:
        """At most so many a second teach: the tasks of one burst have one error."""
        if at - self._last_learnt.get(seat, -inf) >= LEARNT_EVERY_S:
            self._last_learnt[seat] = at
            self.learned.track(*seat).learn(raw, wait_s)
