"""How fast money is spent, and tenants in the order of it. Cost grows with tenants, never with what was charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from scheduler.policy.books import CostRow
from scheduler.policy.types import TenantId
from scheduler.store import queries
from scheduler.store.sums import load_summed

_SQL: Final = queries.load("spending.sql")


def mark_burn() -> int:
    """Let the marks follow that burns are measured from; how many moved."""
    return queries.run(_SQL["mark_burn"])


class SpenderRow(NamedTuple):
    """A tenant and its present budget. `key` is what the page is in the order of, the largest first.

    `burn` is nano-dollars per hour over the last minutes, None while too little is known; `share` the part that its
    weight is of the weights of all who have work, None for who has none. Times in Unix seconds, None: no period begun
    (the last one ended at `after`).
    """

    key: float
    slug: str
    name: str
    status: str
    weight: float
    time_zone: str
    alert_at: Sequence[float]
    limit: int | None
    spent: int
    reserved: int
    burn: float | None
    starts_at: float | None
    ends_at: float | None
    after: float | None
    in_flight: int
    waiting: int
    share: float | None
    now: float


class Place(NamedTuple):
    """A place in a list of spenders: after a row with this key and slug, or (`back`) before it."""

    key: float
    slug: str
    back: bool


def load_spenders(*, name: str, sort: str, place: Place | None, rows_max: int) -> list[SpenderRow]:
    """Tenants whose slug or name has `name` in it, by `risk`, `burn`, `spent` or `slug`, from a place on."""
    params = {
        "name": name.lower(),
        "sort": sort,
        "key": None if place is None else place.key,
        "slug": "" if place is None else place.slug,
        "back": place is not None and place.back,
        "rows_max": rows_max,
    }
    return [SpenderRow(*row) for row in queries.fetch(_SQL["list_spenders"], params)]


class PartRow(NamedTuple):
    """What was spent on a part, in nano-dollars.

    `by` says of what it is one: `day`, `tenant` (of everybody's alone), `pool`, `kind`, `model` (empty: the time of
    workers), `class` (the number of a class; -1: not known). Each of them has all that was spent.
    """

    by: str
    what: str
    cost: int
    charged: int
    waste: int
    successes: int


def load_spending(*, starts: float, zone: str, tenant: TenantId | None, parts_max: int) -> list[PartRow]:
    """What was spent from `starts` on, by the days of a zone and by everything else: at most so many parts of each.

    For everybody (`tenant` None) the zone has to be UTC: the sums of everybody's days are of that.
    """
    params = {"starts": starts, "zone": zone, "tenant": tenant, "parts_max": parts_max, "summed": load_summed()}
    return [PartRow(*row) for row in queries.fetch_anew(_SQL["read_spending"], params)]


def load_cost_by(
    by: str, *, starts: float, ends: float | None, tenant: TenantId | None, rows_max: int
) -> list[CostRow]:
    """What was spent in [starts, ends) by one of tenant, pool, kind and model; the total first, then the dearest.

    Without an end: until now. Reads the sums by day, in UTC for everybody, and what they lack in the ledger.
    """
    params = {
        "by": by, "starts": starts, "ends": ends, "tenant": tenant, "rows_max": rows_max, "summed": load_summed()
    }  # fmt: skip
    return [CostRow(*row) for row in queries.fetch_anew(_SQL["read_cost"], params)]


class AlertTold(NamedTuple):
    """A budget of a tenant reached a part of its limit."""

    scope: str
    scope_id: int
    threshold: float
    limit: int
    spent: int
    at: float


class RunOf(NamedTuple):
    """A run of a tenant and what it spent."""

    id: int
    name: str
    state: str
    at: float
    spent: int | None


def load_story(tenant: TenantId, *, rows_max: int) -> tuple[list[AlertTold], list[RunOf]]:
    """The newest alerts and runs of a tenant."""
    row = queries.fetch_one(_SQL["read_tenant_story"], {"tenant": tenant, "rows_max": rows_max})
    alerts, runs = (orjson.loads(part or "[]") for part in row or (None, None))
    return [AlertTold(*each) for each in alerts], [RunOf(*each) for each in runs]


class BurnRow(NamedTuple):
    """One of those who burn most, in nano-dollars per hour, and its budget; `all_burn` is what everybody burns."""

    slug: str
    burn: float
    spent: int
    reserved: int
    limit: int | None
    alert_at: Sequence[float]
    all_burn: float


def load_top_burns(rows_max: int) -> list[BurnRow]:
    """Those who burn most now, the fastest first. Cost grows with tenants that have spent, not with what they did."""
    return [BurnRow(*row) for row in queries.fetch(_SQL["read_top_burns"], {"rows_max": rows_max})]
