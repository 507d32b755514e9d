"""Tenants as operators look at them: how their budgets stand, how fast they go, and what they keep busy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from scheduler.policy.books import TopUpRow
from scheduler.policy.pace import BudgetState, projected, runs_out_at, state_of
from scheduler.policy.periods import period_at
from scheduler.policy.types import PriorityClass, TenantId
from scheduler.reads.tenants import tenant_detail
from scheduler.store.dispatch import load_now
from scheduler.store.spending import (
    AlertTold,
    PartRow,
    Place,
    RunOf,
    SpenderRow,
    load_spenders,
    load_spending,
    load_story,
)
from scheduler.store.top_ups import load_top_ups

__all__ = ["AlertTold", "RunOf"]

SORTS: Final = ("risk", "burn", "spent", "slug")
PAGE_ROWS: Final = 50
PARTS_MAX: Final = 20
STORY_ROWS: Final = 5
DAYS_MAX: Final = 100
BY: Final = ("tenant", "pool", "model", "kind", "class")


@dataclass(frozen=True, slots=True)
class Spender:
    """A tenant with its budget in its present period, in nano-dollars; `limit` None: none. Times in Unix seconds."""

    slug: str
    name: str
    suspended: bool
    weight: float
    share: float | None
    in_flight: int
    waiting: int
    time_zone: str
    limit: int | None
    spent: int
    reserved: int
    state: BudgetState
    burn: float | None
    projected: int
    runs_out_at: float | None
    ends_at: float
    now: float

    @property
    def left(self) -> int | None:
        """What may still be reserved; None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.spent - self.reserved)


@dataclass(frozen=True, slots=True)
class SpenderPage:
    """A page of tenants, with the places that the pages beside it begin at."""

    rows: list[Spender]
    before: str | None
    after: str | None


def list_spenders(*, sort: str = "risk", name: str = "", before: str = "", after: str = "") -> SpenderPage:
    """A page of tenants. A place that is none is the beginning."""
    place = _place(before, back=True) or _place(after, back=False)
    sort = sort if sort in SORTS else SORTS[0]
    found = load_spenders(name=name.replace("\x00", ""), sort=sort, place=place, rows_max=PAGE_ROWS + 1)
    back = place is not None and place.back
    more = len(found) > PAGE_ROWS
    rows = (found[1:] if back else found[:-1]) if more else found
    first = rows and (more if back else place is not None)
    last = rows and (True if back else more)
    return SpenderPage(
        [_spender(row) for row in rows],
        before=f"{rows[0].key!r}:{rows[0].slug}" if first else None,
        after=f"{rows[-1].key!r}:{rows[-1].slug}" if last else None,
    )


def _place(text: str, *, back: bool) -> Place | None:
    key, _, slug = text.partition(":")
    try:
        number = float(key)
    except ValueError:
        return None
    return Place(number, slug, back) if math.isfinite(number) and slug and "\x00" not in slug else None


def _spender(row: SpenderRow) -> Spender:
    starts_at, ends_at = row.starts_at, row.ends_at
    if starts_at is None or ends_at is None:
        starts_at, ends_at = period_at(row.now, row.time_zone, after=row.after)
    money = {"spent": row.spent, "reserved": row.reserved}
    return Spender(
        slug=row.slug,
        name=row.name,
        suspended=row.status == "suspended",
        weight=row.weight,
        share=row.share,
        in_flight=row.in_flight,
        waiting=row.waiting,
        time_zone=row.time_zone,
        limit=row.limit,
        **money,
        state=state_of(row.limit, **money, alert_at=row.alert_at),
        burn=row.burn,
        projected=projected(**money, starts_at=starts_at, ends_at=ends_at, now=row.now),
        runs_out_at=runs_out_at(row.limit, **money, burn=row.burn or 0.0, ends_at=ends_at, now=row.now),
        ends_at=ends_at,
        now=row.now,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """What was spent on something, in nano-dollars; `what` is empty for what has no name."""

    what: str
    cost: int
    charged: int
    waste: int
    successes: int

    @property
    def per_success(self) -> int | None:
        """All of the cost ÷ successes, rounded up; None without any."""
        return -(-self.cost // self.successes) if self.successes else None


_NOTHING: Final = Part("", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Spending:
    """What was spent in a time: all of it, day by day (those without too), and by what `BY` names, the dearest first.

    `cut` are those of which there are more parts than are here.
    """

    total: Part
    days: Sequence[tuple[date, Part]]
    by: Mapping[str, Sequence[Part]]
    cut: frozenset[str]


def spending(starts_at: float, now: float, *, zone: str, tenant: TenantId | None = None) -> Spending:
    """What was spent from `starts_at` until now, of a tenant by the days of its zone or of all by those of UTC.

    At most `DAYS_MAX` days are told apart.
    """
    found: dict[str, list[Part]] = {}
    for row in load_spending(starts=starts_at, zone=zone, tenant=tenant, parts_max=PARTS_MAX + 1):
        found.setdefault(row.by, []).append(_part(row))
    spent_on = {part.what: part for part in found.get("day", [])}
    days = [(day, spent_on.get(day.isoformat(), _NOTHING)) for day in _days(starts_at, now, zone)]
    return Spending(
        total=_sum(found.get("day", [])),
        days=days,
        by={name: found.get(name, [])[:PARTS_MAX] for name in BY},
        cut=frozenset(name for name in BY if len(found.get(name, [])) > PARTS_MAX),
    )


def _sum(parts: Sequence[Part]) -> Part:
    return Part(
        "",
        cost=sum(part.cost for part in parts),
        charged=sum(part.charged for part in parts),
        waste=sum(part.waste for part in parts),
        successes=sum(part.successes for part in parts),
    )


def read_clock() -> float:
    """The time of the database, in Unix seconds."""
    return load_now()


def _part(row: PartRow) -> Part:
    what = row.what
    if row.by == "class":
        what = PriorityClass(int(what)).label if int(what) >= 0 else ""
    return Part(what, row.cost, row.charged, row.waste, row.successes)


def _days(starts_at: float, ends_at: float, zone: str) -> list[date]:
    """The days of a zone that have something of [starts_at, ends_at), the last `DAYS_MAX` of them."""
    first, last = (datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone)).date() for at in (starts_at, ends_at - 1))
    number = min((last - first).days + 1, DAYS_MAX)
    return [last - timedelta(days=back) for back in range(number - 1, -1, -1)]


def list_top_ups(slug: str, only: TenantId | None, *, before: int | None = None, rows_max: int) -> list[TopUpRow]:
    """Top-ups of a tenant, newest first. Raises NotFound, also for one that the caller may not see."""
    return load_top_ups(tenant_detail(slug, only).id, before=before, rows_max=rows_max)


@dataclass(frozen=True, slots=True)
class Story:
    """What came up lately about a tenant, newest first."""

    top_ups: Sequence[TopUpRow]
    alerts: Sequence[AlertTold]
    runs: Sequence[RunOf]


def story_of(tenant: TenantId) -> Story:
    """The last top-ups, alerts and runs of a tenant."""
    alerts, runs = load_story(tenant, rows_max=STORY_ROWS)
    return Story(load_top_ups(tenant, rows_max=STORY_ROWS), alerts, runs)
