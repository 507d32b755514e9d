"""Reads what needs a person and is no state of a pool or limit: budgets that run out, tasks that died, open work."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("troubles.sql")

ALERTS_MAX: Final = 200
BUDGETS_MAX: Final = 5
DEATHS_MAX: Final = 5
LATELY_S: Final = 300.0
TALLY_MAX: Final = 1_000


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


class Tally(NamedTuple):
    """How many of each there are, at most `TALLY_MAX`: runs that run, dead letters, operations at work."""

    runs: int
    dead: int
    operations: int


def load_tally() -> Tally:
    """What the navigation counts. Costs the same however many there are."""
    row = queries.fetch_one(_SQL["tally"], {"most": TALLY_MAX})
    assert row is not None  # noqa: S101 - counts give a row
    return Tally(*row)


def load_spent_budgets() -> list[SpentBudget]:
    """The months in force that are spent most."""
    rows = queries.fetch(_SQL["spent_budgets"], {"alerts_max": ALERTS_MAX, "rows_max": BUDGETS_MAX})
    return [SpentBudget(*row) for row in rows]


def load_recent_deaths() -> list[Death]:
    """What died within the last minutes, by what it died of."""
    rows = queries.fetch(_SQL["recent_deaths"], {"within_s": LATELY_S, "rows_max": DEATHS_MAX})
    return [Death(*row) for row in rows]
