"""How a wait that was foreseen is sent."""

from __future__ import annotations

from math import inf

from scheduler.api.answers import Out
from scheduler.policy.calibration import Band


class BandOut(Out):
    """A wait that was foreseen, in seconds: half of the tasks like this wait less than p50, nine in ten less than p90.

    Null: longer than the fifteen minutes that are looked ahead.
    """

    p50_s: float | None
    p90_s: float | None

    @classmethod
    def of(cls, band: Band) -> BandOut:
        """From what was foreseen."""
        return cls(p50_s=_seconds(band.p50_s), p90_s=_seconds(band.p90_s))


def _seconds(wait_s: float) -> float | None:
    return None if wait_s == inf else round(wait_s, 3)
