"""Judges forecasts on a trace: at moments spread over it, what the product would have said, knowing what it then knew.

The product foretells every two seconds and learns from each forecast that came out; a replay samples, to be quick, and
so judges a forecast that knows its own record less well.
"""

from __future__ import annotations

from random import Random

from scheduler.policy.calibration import Report, report
from scheduler.policy.forecast import Forecast
from scheduler.policy.hindsight import EVERY_S, Hindsight
from scheduler.replay.settings import Setup
from scheduler.replay.world import Work, set_stage


def judge(works: tuple[Work, ...], setup: Setup, *, forecasts: int) -> Report:
    """Walk the work with about so many forecasts; each is asked by the requests of the two seconds after it."""
    stage = set_stage(works, setup)
    walk = _Sampled(
        stage.scene,
        stage.arrivals,
        draw=Random(setup.seed).random,  # noqa: S311 - backoff, not secrets
        imagine=Random(f"{setup.seed} imagined").random,  # noqa: S311 - imagination, not secrets
    )
    # One in so many arrivals is asked about: most of them come in bursts, and so do most of the questions.
    asked = stage.arrivals[:: max(1, len(stage.arrivals) // forecasts)]
    walk.wanted = frozenset(int(arrival.at / EVERY_S) for arrival in asked)
    walk.play()
    return report(walk.outcomes)


class _Sampled(Hindsight):
    """Looks as often as the product and learns from what it sees, but foretells at the `wanted` looks only."""

    wanted: frozenset[int] = frozenset()
    _looks = 0

    def _look(self) -> None:
        self._looks += 1
        if self._looks in self.wanted:
            super()._look()
            return
        self.learned.arrivals.turn(self.run.now)
        self._learn()
        self._forecast = Forecast(self.run.now, {}, {}, {}, {})
        self._joined.clear()
