"""Says how a tenant's money stands: states in a word, amounts with their exact figures, times in its own zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from scheduler.live import drawing, wording
from scheduler.live.rows import Chip
from scheduler.policy.money import format_usd
from scheduler.policy.pace import BudgetState
from scheduler.reads.spending import Spender

_CHIPS: Final = {
    BudgetState.UNLIMITED: Chip("idle", "No limit", "quiet"),
    BudgetState.OK: Chip("ok", "OK", "ok"),
    BudgetState.WARNED: Chip("warn", "Warned", "warn"),
    BudgetState.THROTTLED: Chip("warn", "Throttled", "warn"),
    BudgetState.BLOCKED: Chip("cross", "Blocked", "bad"),
}
_SUSPENDED: Final = Chip("pause", "Suspended", "quiet")
_SAYS: Final = {
    BudgetState.UNLIMITED: "It may spend as much as it likes.",
    BudgetState.OK: "Nothing keeps its work back for money.",
    BudgetState.WARNED: "A threshold of its budget is passed; its work goes on.",
    BudgetState.THROTTLED: (
        "What is left of its budget is reserved by attempts that run. More starts when they end for less than reserved."
    ),
    BudgetState.BLOCKED: (
        "Its budget is spent. Its work that costs money waits for a higher limit, a top-up, or the next period."
    ),
}


@dataclass(frozen=True, slots=True)
class Amount:
    """Dollars as they are read, and exactly."""

    text: str
    exact: str


@dataclass(frozen=True, slots=True)
class When:
    """A time as it is read, and in RFC 3339."""

    text: str
    machine: str


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
    return Amount(wording.dollars(nano), f"${format_usd(nano)}")


def line_of(row: Spender) -> SpenderLine:
    """How a tenant reads in the table."""
    share = "" if row.share is None else f"{wording.percent(row.share)} of those at work"
    return SpenderLine(
        slug=row.slug,
        name=row.name,
        chip=chip_of(row.state, suspended=row.suspended),
        says=_SAYS[row.state],
        bar=bar_of(row.limit, spent=row.spent, reserved=row.reserved),
        used=used_of(row.limit, row.spent),
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


def chip_of(state: BudgetState, *, suspended: bool) -> Chip:
    """How a tenant stands, in a word."""
    return _SUSPENDED if suspended else _CHIPS[state]


def sentence_of(state: BudgetState, *, suspended: bool) -> str:
    """How it stands, in a sentence."""
    return "Suspended: nothing of it starts; what runs goes on." if suspended else _SAYS[state]


def bar_of(limit: int | None, *, spent: int, reserved: int) -> list[drawing.Segment]:
    """What is spent and reserved of a limit."""
    if not limit:
        return []
    name = "critical" if spent >= limit else "use"
    return drawing.segments([(name, spent), ("low", reserved)], max(limit, spent + reserved))


def used_of(limit: int | None, spent: int) -> str:
    """The part of the limit that is spent."""
    return wording.NONE if not limit else wording.percent(spent / limit)


def outlook_of(row: Spender) -> str:
    """Where the money goes at the present burn, else what the period comes to."""
    if row.state is BudgetState.BLOCKED:
        return f"resets in {wording.duration(row.ends_at - row.now)}"
    if row.runs_out_at is not None and row.runs_out_at > row.now:
        return f"gone in {wording.duration(row.runs_out_at - row.now)}"
    return f"ends the period at {wording.dollars(row.projected)}" if row.spent else wording.NONE


def in_zone(at: float, zone: str) -> When:
    """A time in a tenant's zone, with its name: ``1 Dec 2026 00:00 Asia/Seoul``."""
    local = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone))
    return When(f"{local.day} {local:%b %Y %H:%M} {zone}", wording.machine(at))


def ahead(at: float, now: float) -> str:
    """How far ahead a time is: ``in 1 d 9 h``."""
    return f"in {wording.duration(max(0.0, at - now))}"


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
