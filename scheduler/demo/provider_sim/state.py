"""Everything that one simulator remembers, and its clocks.

Decides what a reset forgets. The clocks are here and nowhere else: `now` is monotonic, `wall_clock` is what the
provider believes the time to be, which may be set wrong on purpose.
"""

from __future__ import annotations

import time
from random import Random

from scheduler.demo.provider_sim import content
from scheduler.demo.provider_sim.faults import Fault, Script
from scheduler.demo.provider_sim.limits import Door, LimitSettings
from scheduler.demo.provider_sim.prompt_cache import PromptCache
from scheduler.demo.provider_sim.settings import MODEL_LATENCY_FACTOR, Settings
from scheduler.demo.provider_sim.stats import Stats


class State:
    """The provider's memory."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.chance = Random(settings.seed)
        self.door = Door(settings.limits)
        self.script = Script(settings.faults, self.now())
        self.stats = Stats(settings.arrivals_max, started_at=self.now())
        self.cache = PromptCache()
        self._ids = 0

    @staticmethod
    def now() -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def wall_clock(self) -> float:
        """Seconds since the epoch, as this provider believes."""
        return time.time() + self.settings.clock_skew_s

    def next_id(self) -> int:
        """A number for the next request."""
        self._ids += 1
        return self._ids

    def draw_latency_s(self, model: str) -> float:
        """How long the next answer takes."""
        settings = self.settings
        factor = MODEL_LATENCY_FACTOR[model]
        return content.latency_s(
            self.chance,
            median_s=settings.latency_median_s * factor,
            sigma=settings.latency_sigma,
            max_s=settings.latency_max_s,
        )

    def set_faults(self, faults: tuple[Fault, ...]) -> None:
        """Replace the script; its times count from now."""
        self.script = Script(faults, self.now())

    def set_limits(self, limits: LimitSettings) -> None:
        """Change the limits; what is in flight stays counted."""
        self.door.edit(limits, now=self.now())

    def reset(self) -> None:
        """As after the start, except for the clock's zero and for what is in flight."""
        in_flight = self.stats.in_flight
        self.chance = Random(self.settings.seed)
        self.set_faults(self.settings.faults)
        self.door.edit(self.settings.limits, now=self.now())
        self.door.fill()
        self.cache.forget()
        self.stats = Stats(self.settings.arrivals_max, started_at=self.stats.started_at)
        self.stats.in_flight = self.stats.max_in_flight = in_flight
