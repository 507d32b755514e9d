"""Decides what a pool's work comes to: arrivals per second by class, and how long a task keeps a slot.

Learned from counts alone, so that it costs nothing on the hot path: what became ready is what waits more plus what was
started; what ended is what was started less what runs more; and the time that ended attempts had taken is the time
slots were busy less what attempts in flight grew older. Averages forget, but silence teaches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import Final, NamedTuple

from scheduler.policy.queueing import smoothing
from scheduler.policy.types import PriorityClass

ARRIVALS_MEMORY: Final = 10.0
"""Arrivals are averaged over so many intervals."""
SERVICE_MEMORY_S: Final = 60.0
SERVICE_MEMORY_TASKS: Final = 50.0
"""Service times are remembered for at least so many tasks, however slowly they come."""
PRIOR_TASKS: Final = 3.0
"""How many tasks of the pool's default duration the first guess counts for."""

SERVICE_MIN_S: Final = 0.001

ByClass = tuple[float, ...]

NONE_BY_CLASS: Final[ByClass] = (0.0,) * len(PriorityClass)


class Counted(NamedTuple):
    """A pool at one moment: ready and ever started by class, running now, and the summed age of what runs."""

    at: float
    ready: ByClass
    started: ByClass
    running: float
    age_s: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known so far. `busy_s` and `ended` are sums that forget: their ratio is the mean service time."""

    counted: Counted | None = None
    arrivals_per_s: ByClass = NONE_BY_CLASS
    busy_s: float = 0.0
    ended: float = 0.0

    def service_s(self, default_s: float) -> float:
        """Mean seconds that a task keeps a slot, at first guessed as `default_s`."""
        return max(SERVICE_MIN_S, (self.busy_s + PRIOR_TASKS * default_s) / (self.ended + PRIOR_TASKS))


def learn(before: Learned, now: Counted, *, interval_s: float) -> Learned:
    """What is known after one more look; looks are about `interval_s` apart.

    A clock that went backwards, or a first look, only sets the mark.
    """
    then = before.counted
    if then is None or now.at <= then.at:
        return replace(before, counted=now)
    elapsed_s = now.at - then.at
    weight = smoothing(elapsed_s, ARRIVALS_MEMORY * interval_s)
    arrivals = tuple(
        rate + weight * (_became_ready(then, now, place) / elapsed_s - rate)
        for place, rate in enumerate(before.arrivals_per_s)
    )
    ended = max(0.0, sum(now.started) - sum(then.started) - (now.running - then.running))
    # Sampling makes one look say too much and the next too little: only the sum is right, so it is not cut at 0.
    # Where nothing ended it is nothing exactly. Slots that are filled right after a look would else seem to have been
    # busy for less time than what runs in them has aged: service times of next to nothing, until the first task ends.
    busy_s = (then.running + now.running) / 2 * elapsed_s - (now.age_s - then.age_s) if ended else 0.0
    kept = exp(-min(elapsed_s / SERVICE_MEMORY_S, ended / SERVICE_MEMORY_TASKS))
    return Learned(now, arrivals, before.busy_s * kept + busy_s, before.ended * kept + ended)


def _became_ready(then: Counted, now: Counted, place: int) -> float:
    """Tasks of a class that became ready in between; at least 0, for those that were cancelled count backwards."""
    return max(0.0, now.ready[place] - then.ready[place] + now.started[place] - then.started[place])
