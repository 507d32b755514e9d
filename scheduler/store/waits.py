"""Reads how long attempts really waited, from a bounded sample of the last hour."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.policy.types import PriorityClass
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("waits.sql")

EACH_MINUTE_MAX: Final = 200
RUNNING_MAX: Final = 2_000


class Observed(NamedTuple):
    """Waits of a pool's class, in seconds: starts and p90 of five minutes, of an hour, and how many kept the target.

    `recent_p90_s` is None without a start in five minutes, `kept` without a target.
    """

    pool: str
    priority: PriorityClass
    recent: int
    recent_p90_s: float | None
    starts: int
    p90_s: float
    kept: int | None


@asked
def load_observed_waits() -> Question[list[Observed]]:
    """How long first attempts of the last hour waited, by pool and class."""
    params = {
        "labels": [p.label for p in sorted(PriorityClass)],
        "each_minute_max": EACH_MINUTE_MAX,
        "running_max": RUNNING_MAX,
    }
    return Question(
        _SQL["observed_waits"],
        params,
        lambda rows: [Observed(pool, PriorityClass(priority), *figures) for pool, priority, *figures in rows],
    )
