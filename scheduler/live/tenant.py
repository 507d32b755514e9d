"""Says how one tenant stands: its budget in a word, a sentence and six numbers, with times in its own zone.

It must never say anything of another tenant: who is bound to one watches this.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from scheduler.live import drawing, wording
from scheduler.live.rows import Chip, Figure
from scheduler.policy.pace import BudgetState
from scheduler.reads.money import BudgetDetail
from scheduler.reads.standings import TenantStanding

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
class When:
    """A time as it is read, and in RFC 3339."""

    text: str
    machine: str


def values_of(standing: TenantStanding) -> dict[str, Any]:
    """What the live page of a tenant is drawn from."""
    budget, suspended = standing.budget, standing.suspended
    return {
        "tenant": budget.slug,
        "chip": chip_of(budget.state, suspended=suspended),
        "sentence": sentence_of(budget.state, suspended=suspended),
        "figures": figures_of(standing),
        "bar": bar_of(budget.limit, spent=budget.spent, reserved=budget.reserved),
        "used": used_of(budget.limit, budget.spent),
    }


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


def in_zone(at: float, zone: str) -> When:
    """A time in a tenant's zone, with its name: ``1 Dec 2026 00:00 Asia/Seoul``."""
    local = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone))
    return When(f"{local.day} {local:%b %Y %H:%M} {zone}", wording.machine(at))


def ahead(at: float, now: float) -> str:
    """How far ahead a time is: ``in 1 d 9 h``."""
    return f"in {wording.duration(max(0.0, at - now))}"


def figures_of(standing: TenantStanding) -> list[Figure]:
    """Six numbers: what is spent, left, burnt and projected, what runs, and when a new period begins."""
    budget = standing.budget
    resets = in_zone(budget.ends_at, budget.time_zone)
    limit = "no limit" if budget.limit is None else f"of {wording.dollars(budget.limit)}"
    top_up = f", {wording.dollars(budget.top_up)} of it topped up" if budget.top_up else ""
    reserved = f"{wording.dollars(budget.reserved)} reserved by what runs"
    goes_on = "the period, if it goes on as until now"
    waiting = f"{wording.count(standing.queued)} waiting"
    burn = None if budget.burn is None else int(budget.burn)
    return [
        Figure("spent", "Spent", wording.dollars(budget.spent), note=f"{limit}{top_up}"),
        Figure(
            "left",
            "Left",
            wording.dollars(budget.left),
            note=reserved,
        ),
        Figure("burn", "Burn per hour", wording.dollars(burn), note=_burn_says(budget)),
        Figure("projected", "Projected", wording.dollars(budget.projected), note=goes_on),
        Figure("running", "Running", wording.count(standing.in_flight), note=waiting),
        Figure("resets", "Resets", f"in {wording.glance(budget.ends_at - budget.now)}", note=resets.text),
    ]


def _burn_says(budget: BudgetDetail) -> str:
    if budget.burn is None:
        return "measured since less than a minute"
    if budget.left == 0:
        return "nothing is left"
    if budget.runs_out_at is not None:
        at = in_zone(budget.runs_out_at, budget.time_zone)
        return f"gone {ahead(budget.runs_out_at, budget.now)}: {at.text}"
    return "lasts to the end of the period" if budget.limit is not None else "over the last ten minutes"
