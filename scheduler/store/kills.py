"""What was killed beside single runs."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.policy.runs import KillScope
from scheduler.policy.types import LeaseId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("kills.sql")


class KillRow(NamedTuple):
    """A kill in force: of what, for the how-manieth time, since when (Unix seconds), by whom and why."""

    scope: KillScope
    name: str
    epoch: int
    killed_at: float
    actor: str
    reason: str


def raise_epoch(scope: KillScope, scope_id: int, *, actor: str, reason: str) -> int | None:
    """Put a kill in force; its epoch, or None when one is."""
    params = {"scope": scope.value, "id": scope_id, "actor": actor, "reason": reason}
    row = queries.fetch_one(_SQL["raise_epoch"], params)
    return None if row is None else int(row[0])


def lift_epoch(scope: KillScope, scope_id: int) -> int | None:
    """Lift a kill; its epoch, or None when none is in force."""
    row = queries.fetch_one(_SQL["lift_epoch"], {"scope": scope.value, "id": scope_id})
    return None if row is None else int(row[0])


@asked
def load() -> Question[list[KillRow]]:
    """The kills in force."""
    return Question(_SQL["read_kills"], {}, lambda rows: [KillRow(KillScope(row[0]), *row[1:]) for row in rows])


def tell() -> list[LeaseId]:
    """Tell what runs under a kill to stop; which were told now."""
    return [LeaseId(row[0]) for row in queries.fetch(_SQL["tell_killed"])]


def count_reached(scope: KillScope, scope_id: int) -> int:
    """How many attempts run under such a kill."""
    row = queries.fetch_one(_SQL["count_reached"], {"scope": scope.value, "id": scope_id})
    return 0 if row is None else int(row[0])
