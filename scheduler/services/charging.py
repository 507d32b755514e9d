"""Replaces what ended attempts had reserved by what they cost, in the transaction that ends their leases.

Idempotent with the lease: an attempt whose lease was not current is not here. It never charges a budget more than it
has left; what a provider bills beyond that stands in the ledger as our cost, not the tenant's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from scheduler.policy.budget import Account, charge
from scheduler.policy.charges import Ended, Line, Pricing, bill
from scheduler.policy.prices import PriceTable
from scheduler.policy.types import BudgetId, Outcome, TenantId
from scheduler.services.alerts import raise_crossed
from scheduler.services.prices import PriceBook, load_book
from scheduler.store import money as store
from scheduler.store.settle import EndedRow


class Billed(NamedTuple):
    """An ended attempt that had something reserved. `usage` and `charged` (calls while it ran) are JSON text."""

    row: EndedRow
    outcome: Outcome
    began: bool
    usage: str | None
    succeeded: bool
    charged: tuple[str, ...] = ()


class _Bill(NamedTuple):
    """What an ended attempt cost in all, line by line, and how its task is billed."""

    ended: Billed
    billing: store.Billing
    lines: list[Line]
    cost: int


def charge_attempts(ended: Sequence[Billed]) -> None:
    """Charge these attempts to their budgets and write them into the ledger.

    1. see how their tasks were priced, look up the prices at their start, and bill them;
    2. where one cost more than it had reserved, lock the budgets: they say how much of that they still allow. What was
       reserved may be used, whatever they say;
    3. write budgets and ledger in one statement, and alerts of thresholds that were reached.
    """
    if not ended:
        return
    bills = _bills(sorted(ended, key=lambda each: each.row.lease))
    locked: dict[BudgetId, store.LockedBudget] = {}
    if any(one.cost > (one.ended.row.reserved or 0) for one in bills):
        locked = store.lock_budgets({BudgetId(b) for each in ended for b in each.row.budgets or ()})
    accounts = {budget: Account(found.view) for budget, found in locked.items()}
    changes: dict[BudgetId, tuple[int, int]] = {}
    tenants: dict[BudgetId, TenantId] = {}
    entries: list[store.Entry] = []
    for one in bills:
        row, reserved = one.ended.row, one.ended.row.reserved or 0
        budgets = tuple(map(BudgetId, row.budgets or ()))
        paid = charge(one.cost, reserved=reserved, accounts=[accounts[b] for b in budgets]) if locked else one.cost
        for budget in budgets:
            spent, freed = changes.get(budget, (0, 0))
            changes[budget] = (spent + paid, freed + reserved)
            tenants[budget] = row.tenant
        entries += _entries(one, budgets, paid)
    booked = store.book_charges(changes, entries)
    raise_crossed((each, changes[each.budget][0], tenants[each.budget]) for each in booked)


def _bills(ended: Sequence[Billed]) -> list[_Bill]:
    """What each cost, by the prices at its start."""
    billing = [store.read_billing(each.row.billing or "") for each in ended]
    pricings = [None if found.pricing is None else store.pricing_of(found.pricing) for found in billing]
    usages = [None if each.usage is None else orjson.loads(each.usage) for each in ended]
    charged = {each.row.lease: [orjson.loads(usage) for usage in each.charged] for each in ended if each.charged}
    known = [*usages, *(usage for several in charged.values() for usage in several)]
    models = {m for u in known if isinstance(m := (u or {}).get("model"), str)}
    book = load_book(models | {p.model for p in pricings if p is not None and p.model is not None})
    bills = []
    for each, found, pricing, usage in zip(ended, billing, pricings, usages, strict=True):
        row = each.row
        calls = tuple(
            (call, _prices_at_start(pricing, call, book, row.started_at)) for call in charged.get(row.lease, ())
        )
        table = _prices_at_start(pricing, usage, book, row.started_at)
        reserved, second = row.reserved or 0, found.worker_second_nano
        lines = bill(Ended(each.outcome, each.began, row.took_s, reserved, pricing, table, second, usage, calls))
        bills.append(_Bill(each, found, lines, sum([line.cost for line in lines])))
    return bills


def _prices_at_start(
    pricing: Pricing | None, usage: Mapping[str, Any] | None, book: PriceBook, at: float
) -> PriceTable | None:
    """The prices of the model and service tier that answered, as far as it said which; None when they are not known."""
    if pricing is None or pricing.table is None or pricing.model is None:
        return None
    model, tier = (None if usage is None else usage.get(name) for name in ("model", "service_tier"))
    return book.find(
        model if isinstance(model, str) and model else pricing.model,
        at=at,
        provider=pricing.provider,
        base_url=pricing.base_url,
        tier=tier if isinstance(tier, str) else pricing.tier,
    )


def _entries(one: _Bill, budgets: tuple[BudgetId, ...], paid: int) -> Iterator[store.Entry]:
    """The lines of a bill as the ledger takes them, the first ones paid as far as that goes."""
    row, found = one.ended.row, one.billing
    outcome = "success" if one.ended.succeeded else "waste"
    for line in one.lines:
        part = min(line.cost, paid)
        paid -= part
        usage = store.usage_text(line.usage)
        billed = (found.kind, found.priority, line.model, line.source, line.price_source, outcome)
        alike = store.Alike(row.tenant, row.pool, budgets, *billed)
        yield store.Entry(row.lease, line.line, row.task, line.cost, part, usage, alike)
