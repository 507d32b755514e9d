"""How long work really waited, beside what was foretold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.policy.types import ResourceKind
from scheduler.reads.forecast import WINDOW_S, Calibration, calibrated
from scheduler.store import forecast, overview, resources
from scheduler.store.asking import Together
from scheduler.store.waits import EACH_MINUTE_MAX, Observed, load_observed_waits

__all__ = ["EACH_MINUTE_MAX", "Observed", "Targets", "targets"]


@dataclass(frozen=True, slots=True)
class Targets:
    """Waits that were seen and how forecasts came out, in the last hour; and what may be changed: limits and pools.

    `seen` is by pool and class, from a sample of each minute; `kinds` are those of all limits by name.
    """

    seen: Sequence[Observed]
    record: Calibration
    kinds: Mapping[str, ResourceKind]
    pools: Sequence[str]


def targets() -> Targets:
    """How targets are kept. One statement."""
    asking = Together()
    seen = asking.add(load_observed_waits.question())
    sampled = asking.add(forecast.load_outcomes.question(WINDOW_S))
    limits = asking.add(resources.load.question())
    pools = asking.add(overview.load_pools.question())
    return Targets(
        seen.value,
        calibrated(sampled.value, window_s=WINDOW_S),
        {row.name: row.view.kind for row in limits.value},
        sorted(row.name for row in pools.value),
    )
