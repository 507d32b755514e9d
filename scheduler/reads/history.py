"""How a pool or a limit stood in the last hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from scheduler.store import history as store
from scheduler.store.history import Sample

__all__ = ["SPAN_S", "LastHour", "Sample", "last_hour"]

SPAN_S: Final = 3_600.0
ROWS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class LastHour:
    """Samples, oldest first, up to `now` (Unix seconds)."""

    now: float
    samples: Sequence[Sample]


def last_hour(kind: Literal["pool", "limit"], name: str, *, now: float) -> LastHour:
    """The samples of one pool or limit up to now, by the database's clock; none for one that nobody knows."""
    return LastHour(now, store.load(kind, name, since=now - SPAN_S, rows_max=ROWS_MAX))
