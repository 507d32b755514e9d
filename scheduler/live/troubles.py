"""Parses what the snapshot says of budgets that run out and of tasks that died lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.live.parsing import Json, items_of, name_of, number_of, text_of, time_of, whole_of

SHAPE_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """A tenant's month of which a part that is told of is spent. Nano-dollars; `ends_s` in Unix seconds."""

    tenant: str
    spent_nano: int
    allowed_nano: int
    ends_s: float | None

    @property
    def part(self) -> float:
        """How much of it is spent; 1 when nothing is allowed."""
        return self.spent_nano / self.allowed_nano if self.allowed_nano > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Death:
    """Dead letters of a pool that are alike: how many are kept, why, and when the newest died."""

    pool: str
    tenant: str
    number: int
    cls: str
    shape: str
    at_s: float | None


def read_budgets(body: Json) -> tuple[SpentBudget, ...]:
    """The budgets of a snapshot, as they were written."""
    return tuple(
        SpentBudget(
            name_of(item, "tenant"), _nano(item, "spent_nano"), _nano(item, "allowed_nano"), time_of(item, "ends")
        )
        for item in items_of(body, "budgets")
    )


def read_deaths(body: Json) -> tuple[Death, ...]:
    """What died lately, as it was written."""
    return tuple(
        Death(
            name_of(item, "pool"),
            name_of(item, "tenant"),
            whole_of(item, "n"),
            name_of(item, "class"),
            text_of(item, "shape", SHAPE_CHARS_MAX),
            time_of(item, "at"),
        )
        for item in items_of(body, "deaths")
    )


def _nano(item: Json, key: str) -> int:
    """Money is whole: never by way of a float."""
    value = item.get(key)
    return value if isinstance(value, int) and number_of(item, key) is not None else 0
