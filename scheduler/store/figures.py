"""Reads what is told about how a pool did lately."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.policy.figures import AttemptFigures
from scheduler.policy.types import PoolId, PriorityClass
from scheduler.store import queries

_SQL: Final = queries.load("figures.sql")


class Promises(NamedTuple):
    """Fixed starts: ahead within the horizon, holding a slot now, due in the window, and those of them met."""

    ahead: int
    held: int
    due: int
    met: int


def load_attempts(pool: PoolId, *, window_s: float, rows_max: int) -> tuple[list[AttemptFigures], list[AttemptFigures]]:
    """The newest attempts of a pool that ended within the window, and those that run."""
    rows = queries.fetch(_SQL["read_attempts_of_pool"], {"pool": pool, "window_s": window_s, "rows_max": rows_max})
    ended: list[AttemptFigures] = []
    running: list[AttemptFigures] = []
    for priority, *rest, runs in rows:
        (running if runs else ended).append(AttemptFigures(PriorityClass(priority), *rest))
    return ended, running


def load_promises(pool: PoolId, *, window_s: float, horizon_s: float) -> Promises:
    """The fixed starts of a pool, counted."""
    params = {"pool": pool, "window_s": window_s, "horizon_s": horizon_s}
    row = queries.fetch_one(_SQL["read_fixed_starts_of_pool"], params)
    assert row is not None  # noqa: S101 - an aggregate gives a row
    return Promises(*row)
