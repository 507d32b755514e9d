"""Says how tenants' money stands in a table: states in a word, amounts with their exact figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.live import drawing, wording
from scheduler.live import tenant as standing
from scheduler.live.rows import Chip
from scheduler.policy.pace import BudgetState
from scheduler.reads.spending import Spender


@dataclass(frozen=True, slots=True)
class Amount:
    """Dollars as they are read, and exactly."""

    text: str
    exact: str


@dataclass(frozen=True, slots=True)
class SpenderLine:
    """A line of the table of tenants."""

    slug: str
    name: str
    chip: Chip
    says: str
    bar: list[drawing.Segment]
    used: str
    spent: Amount
    limit: Amount | None
    reserved: Amount | None
    left: Amount | None
    burn: Amount | None
    outlook: str
    in_flight: str
    waiting: str
    weight: str
    share: str


def amount(nano: int) -> Amount:
    """Nano-dollars for people."""
    return Amount(wording.dollars(nano), wording.dollars_exact(nano))


def line_of(row: Spender) -> SpenderLine:
    """How a tenant reads in the table."""
    share = "" if row.share is None else f"{wording.percent(row.share)} of those at work"
    return SpenderLine(
        slug=row.slug,
        name=row.name,
        chip=standing.chip_of(row.state, suspended=row.suspended),
        says=standing.sentence_of(row.state, suspended=False),
        bar=standing.bar_of(row.limit, spent=row.spent, reserved=row.reserved),
        used=standing.used_of(row.limit, row.spent),
        spent=amount(row.spent),
        limit=None if row.limit is None else amount(row.limit),
        reserved=amount(row.reserved) if row.reserved else None,
        left=None if row.left is None else amount(row.left),
        burn=None if row.burn is None else amount(int(row.burn)),
        outlook=outlook_of(row),
        in_flight=wording.count(row.in_flight),
        waiting=wording.count(row.waiting),
        weight=f"{row.weight:g}",
        share=share,
    )


def outlook_of(row: Spender) -> str:
    """Where the money goes at the present burn, else what the period comes to."""
    if row.state is BudgetState.BLOCKED:
        return f"resets in {wording.duration(row.ends_at - row.now)}"
    if row.runs_out_at is not None and row.runs_out_at > row.now:
        return f"gone in {wording.duration(row.runs_out_at - row.now)}"
    return f"ends the period at {wording.dollars(row.projected)}" if row.spent else wording.NONE


def headline(rows: Sequence[Spender]) -> str:
    """What needs somebody, of the tenants on a page that begins with those in trouble."""
    blocked = [row.slug for row in rows if row.state is BudgetState.BLOCKED]
    soon = [row.slug for row in rows if row.state is not BudgetState.BLOCKED and row.runs_out_at is not None]
    says = []
    if blocked:
        says.append(f"The budget of {wording.name_list(blocked)} is spent: work that costs money waits.")
    if soon:
        says.append(f"At the present burn {wording.name_list(soon)} will run out before the period ends.")
    return " ".join(says) or "No budget is spent, and none runs out at the present burn."
