"""Reads what needs a person and is no state of a pool or limit: budgets that run out, tasks that died lately."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("troubles.sql")

ALERTS_MAX: Final = 200
BUDGETS_MAX: Final = 5
DEATHS_MAX: Final = 5
LATELY_S: Final = 300.0


class SpentBudget(NamedTuple):
    """A tenant's month of which a part that is told of is spent; it ends at `ends` (Unix seconds)."""

    tenant: str
    spent_nano: int
    allowed_nano: int
    ends: float


class Death(NamedTuple):
    """Dead letters that are alike, of which the newest died at `at` (Unix seconds)."""

    pool: str
    tenant: str
    n: int
    failure_class: str
    shape: str
    at: float


def load_spent_budgets() -> list[SpentBudget]:
    """The months in force that are spent most."""
    rows = queries.fetch(_SQL["spent_budgets"], {"alerts_max": ALERTS_MAX, "rows_max": BUDGETS_MAX})
    return [SpentBudget(*row) for row in rows]


def load_recent_deaths() -> list[Death]:
    """What died within the last minutes, by what it died of."""
    rows = queries.fetch(_SQL["recent_deaths"], {"within_s": LATELY_S, "rows_max": DEATHS_MAX})
    return [Death(*row) for row in rows]
