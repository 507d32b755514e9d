"""Parses what the snapshot says of budgets that run out, of tasks that died lately, and of what there is to count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.live.parsing import Json, items_of, name_of, number_of, text_of, time_of, whole_of

SHAPE_CHARS_MAX: Final = 200
TALLY_MAX: Final = 1_000


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


@dataclass(frozen=True, slots=True)
class Tally:
    """What the navigation counts, each up to `TALLY_MAX`: runs that run, dead letters, operations at work."""

    runs: int = 0
    dead: int = 0
    operations: int = 0

    @property
    def parts(self) -> list[tuple[str, str, str]]:
        """The entry of the navigation, the number as it is read, and what is counted; no number for none."""
        return [
            ("runs", _tallied(self.runs), "running"),
            ("dead", _tallied(self.dead), "kept"),
            ("operations", _tallied(self.operations), "at work"),
        ]


NOTHING_OPEN: Final = Tally()


def _tallied(number: int) -> str:
    return "" if number <= 0 else str(number) if number < TALLY_MAX else f"{TALLY_MAX - 1}+"


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


def read_tally(item: Json) -> Tally:
    """The counts of a snapshot, as they were written."""
    return Tally(*(whole_of(item, name) for name in ("runs", "dead", "operations")))


def _nano(item: Json, key: str) -> int:
    """Money is whole: never by way of a float."""
    value = item.get(key)
    return value if isinstance(value, int) and number_of(item, key) is not None else 0
