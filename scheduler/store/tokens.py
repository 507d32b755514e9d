"""Tokens as those see them who give them out, and when they were used last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("tokens.sql")


class TokenEntry(NamedTuple):
    """A token, never its secret. `tenant` None: every tenant's; `pools` None: any. Times in Unix seconds."""

    id: int
    public_id: str
    name: str
    tenant: str | None
    scopes: Sequence[str]
    pools: Sequence[str] | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None
    now: float


def note_use(public_id: str, *, every_s: float) -> None:
    """Keep that the token is used, unless that was kept within this time."""
    queries.run(_SQL["note_use"], {"public_id": public_id, "every_s": every_s})


def load(*, before: int | None, rows_max: int) -> list[TokenEntry]:
    """The newest first."""
    return [TokenEntry(*row) for row in queries.fetch(_SQL["list_tokens"], {"before": before, "rows_max": rows_max})]
