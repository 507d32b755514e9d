"""How long work really waited, beside what was foretold."""

from __future__ import annotations

from scheduler.store.waits import EACH_MINUTE_MAX, Observed, load_observed_waits

__all__ = ["EACH_MINUTE_MAX", "Observed", "observed_waits"]


def observed_waits() -> list[Observed]:
    """Waits of first attempts in the last hour, by pool and class, from a sample of each minute."""
    return load_observed_waits()
