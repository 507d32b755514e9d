"""Decides the geometry of bars by day and the lines of tables of parts: numbers in, figures and texts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from scheduler.live import drawing, wording
from scheduler.reads.spending import Part, Spending
from scheduler.web.tenant_words import Amount, amount

_WIDTH: Final = 600
_HEIGHT: Final = 150
_NAMES: Final = {
    "tenant": "Tenants",
    "pool": "Pools",
    "model": "Models",
    "kind": "Kinds of task",
    "class": "Classes",
}
_NAMELESS: Final = {"model": "no model: workers’ time", "kind": "no kind", "class": "class not known"}


@dataclass(frozen=True, slots=True)
class DayBar:
    """A day's column: what of it succeeded from the base line up, what was wasted above."""

    x: float
    width: float
    y: int
    height: int
    waste_y: int
    waste_height: int


@dataclass(frozen=True, slots=True)
class DayRow:
    """A day as the table has it."""

    day: str
    cost: Amount
    waste: Amount
    successes: str
    per_success: str


@dataclass(frozen=True, slots=True)
class DayChart:
    """Columns under a round top, and the same as rows, newest first."""

    bars: list[DayBar]
    rows: list[DayRow]
    top: str
    half: str
    first: str
    last: str
    says: str


@dataclass(frozen=True, slots=True)
class PartLine:
    """A part as its table has it; `bar` is its share of the whole."""

    what: str
    url: str
    cost: Amount
    bar: list[drawing.Segment]
    share: str
    waste: str
    successes: str
    per_success: str


@dataclass(frozen=True, slots=True)
class PartTable:
    """What was spent by one thing; `cut`: there is more than is shown."""

    key: str
    title: str
    lines: list[PartLine]
    cut: bool


def day_chart(found: Spending) -> DayChart:
    """Spending by day."""
    costs = [part.cost for _, part in found.days]
    top = drawing.nice_top(max([*costs, 0]) / 1e9) * 1e9  # of the drawing only: no amount comes from here
    step = _WIDTH / max(1, len(found.days))
    return DayChart(
        bars=[_bar(place, part, top=top, step=step) for place, (_, part) in enumerate(found.days) if part.cost > 0],
        rows=[
            DayRow(
                f"{day:%a} {day.day} {day:%b %Y}",
                amount(part.cost),
                amount(part.waste),
                wording.count(part.successes),
                wording.dollars(part.per_success),
            )
            for day, part in reversed(found.days)
        ],
        top=wording.dollars(int(top)),
        half=wording.dollars(int(top / 2)),
        first=_short(found, 0),
        last=_short(found, -1),
        says=f"Cost by day over {wording.plural(len(costs), 'day')}; highest {wording.dollars(max([*costs, 0]))}. "
        "The table below has the same numbers.",
    )


def _bar(place: int, part: Part, *, top: float, step: float) -> DayBar:
    tall = max(2, round((_HEIGHT - 2) * part.cost / top))
    wasted = min(tall, round((_HEIGHT - 2) * part.waste / top))
    width = max(1.0, step * 0.72)
    base = _HEIGHT - 1
    return DayBar(
        round(place * step + (step - width) / 2, 1),
        round(width, 1),
        base - tall + wasted,
        tall - wasted,
        base - tall,
        wasted,
    )


def _short(found: Spending, place: int) -> str:
    return f"{found.days[place][0].day} {found.days[place][0]:%b}" if found.days else ""


def part_tables(found: Spending, keys: Sequence[str]) -> list[PartTable]:
    """What was spent, by each of these, the dearest first."""
    return [
        PartTable(key, _NAMES[key], [_line(key, part, found.total.cost) for part in found.by[key]], key in found.cut)
        for key in keys
    ]


def _url(key: str, what: str) -> str:
    """The page of what has one."""
    route = {"tenant": "tenant", "pool": "pool"}.get(key)
    return "" if route is None or not what else reverse(f"ops:{route}", args=[what])


def _line(key: str, part: Part, whole: int) -> PartLine:
    useful = part.cost - part.waste
    return PartLine(
        what=part.what or _NAMELESS.get(key, wording.NONE),
        url=_url(key, part.what),
        cost=amount(part.cost),
        bar=drawing.segments([("use", useful), ("hot", part.waste)], whole),
        share=wording.percent(part.cost / whole) if whole else wording.NONE,
        waste=wording.percent(part.waste / part.cost) if part.cost else wording.NONE,
        successes=wording.count(part.successes),
        per_success=wording.dollars(part.per_success),
    )
