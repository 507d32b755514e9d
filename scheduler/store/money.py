"""Reads what work costs and what may be spent; writes charges, periods and the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from scheduler.policy.charges import Pricing, read_pricing
from scheduler.policy.types import BudgetId, BudgetView, LeaseId, PoolId, TaskId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("money.sql")
_OPENING: Final = queries.load("dispatch.sql")


class Opening(NamedTuple):
    """A tenant without a budget in force. `after` is when its last period ended, in Unix seconds."""

    tenant: TenantId
    time_zone: str
    monthly_nano: int | None
    after: float | None


class NewPeriod(NamedTuple):
    """A period to begin: start and end in Unix seconds, and its limit."""

    tenant: TenantId
    starts_at: float
    ends_at: float
    limit_nano: int | None


def load_openings(tenants: Collection[TenantId]) -> list[Opening]:
    """What the next periods of these tenants are made from."""
    rows = queries.fetch(_OPENING["read_openings"], {"tenants": queries.array(tenants)})
    return [Opening(TenantId(tenant), *rest) for tenant, *rest in rows]


def open_budgets(periods: Sequence[NewPeriod]) -> dict[TenantId, BudgetView]:
    """Begin periods; the budgets that this began."""
    params = {
        "tenants": queries.array(p.tenant for p in periods),
        "starts": queries.array(p.starts_at for p in periods),
        "ends": queries.array(p.ends_at for p in periods),
        "limits": queries.array(p.limit_nano for p in periods),
    }
    return {
        TenantId(tenant): BudgetView(BudgetId(budget), limit, ends_at=ends_at)
        for tenant, budget, limit, ends_at in queries.fetch(_OPENING["open_budgets"], params)
    }


class Billing(NamedTuple):
    """How a task is billed: `pricing` is JSON text; `worker_second_nano` what its pool's workers cost."""

    kind: str
    priority: int
    worker_second_nano: int | None
    pricing: str | None


@lru_cache(maxsize=1024)
def read_billing(kept: str) -> Billing:
    """As the end of a lease tells it: those alike are read once."""
    return Billing(*orjson.loads(kept))


@lru_cache(maxsize=1024)
def pricing_of(text: str) -> Pricing:
    """How a task was priced, as it is kept: those alike are read once."""
    return read_pricing(orjson.loads(text))


class LockedBudget(NamedTuple):
    """A budget that nobody else changes until this transaction ends. `thresholds`: when its owner is told."""

    view: BudgetView
    thresholds: Sequence[float]


RUN_THRESHOLDS: Final = (0.8,)


def lock_budgets(budgets: Collection[BudgetId]) -> dict[BudgetId, LockedBudget]:
    """Lock these budgets, in id order."""
    rows = queries.fetch(_SQL["lock_budgets"], {"budgets": queries.array(sorted(budgets))})
    return {
        BudgetId(budget): LockedBudget(
            BudgetView(BudgetId(budget), *amounts), RUN_THRESHOLDS if alert_at is None else alert_at
        )
        for budget, *amounts, alert_at in rows
    }


class Alike(NamedTuple):
    """What most lines of the ledger that are written together have in common: whose they are, how they were billed."""

    tenant: TenantId
    pool: PoolId
    budgets: tuple[BudgetId, ...]
    kind: str
    priority: int
    model: str | None
    usage_source: str
    price_source: str
    outcome: str


class Entry(NamedTuple):
    """A line of the ledger, in nano-dollars. `usage` is JSON text."""

    lease: LeaseId
    line: int
    task: TaskId
    cost: int
    charge: int
    usage: str | None
    alike: Alike


class Booked(NamedTuple):
    """A budget after it was charged. `limit` None: it has none. `thresholds`: when its owner is told."""

    budget: BudgetId
    limit: int | None
    spent: int
    thresholds: Sequence[float]


def book_charges(changes: Mapping[BudgetId, tuple[int, int]], entries: Sequence[Entry]) -> list[Booked]:
    """Charge budgets by (spent, freed) and append entries; the budgets as they are then.

    Most entries have in common whose they are and how they were billed: that is sent once for those alike.
    """
    places: dict[Alike, int] = {}
    for entry in entries:
        places.setdefault(entry.alike, len(places) + 1)
    tenants, pools, held, kinds, priorities, models, usage_sources, price_sources, outcomes = (
        zip(*places, strict=True) if places else [()] * 9
    )
    leases, lines, tasks, costs, charges, usages, alike = zip(*entries, strict=True) if entries else [()] * 7
    params: dict[str, Any] = {
        "budgets": queries.array(changes),
        "spent": queries.array(spent for spent, _ in changes.values()),
        "freed": queries.array(freed for _, freed in changes.values()),
        "leases": queries.array(leases),
        "lines": queries.array(lines),
        "tasks": queries.array(tasks),
        "costs": queries.array(costs),
        "charges": queries.array(charges),
        "usages": queries.text_array(usages),
        "places": queries.array(map(places.__getitem__, alike)),
        "tenants": queries.array(tenants),
        "pools": queries.array(pools),
        "held": queries.text_array(map(queries.array, held)),
        "kinds": queries.text_array(kinds),
        "priorities": queries.array(priorities),
        "models": queries.text_array(models),
        "usage_sources": queries.array(usage_sources),
        "price_sources": queries.array(price_sources),
        "outcomes": queries.array(outcomes),
    }
    return [
        Booked(BudgetId(budget), limit, spent, RUN_THRESHOLDS if alert_at is None else alert_at)
        for budget, limit, spent, alert_at in queries.fetch(_SQL["book_charges"], params)
    ]


class PriceOverride(NamedTuple):
    """An operator's price of a model, in nano-dollars per million tokens, valid in [valid_from, valid_to)."""

    model: str
    provider: str
    input: int
    output: int
    cache_read: int | None
    cache_write: int | None
    cache_write_1h: int | None
    valid_from: float
    valid_to: float | None


def load_prices_of(models: Collection[str]) -> list[PriceOverride]:
    """What operators say these models cost."""
    rows = queries.fetch(_SQL["read_prices_of"], {"models": queries.text_array(models)})
    return [PriceOverride(*row) for row in rows]


def usage_text(usage: Mapping[str, Any] | None) -> str | None:
    """A usage record as the ledger keeps it."""
    return None if usage is None else orjson.dumps(dict(usage)).decode()
