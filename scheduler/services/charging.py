"""Replaces what ended attempts had reserved by what they cost, in the transaction that ends their leases.

Idempotent with the lease: an attempt whose lease was not current is not here. It never charges a budget more than it
has left; what a provider bills beyond that stands in the ledger as our cost, not the tenant's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from scheduler.policy.budget import Account, charge
from scheduler.policy.charges import Ended, Line, Pricing, bill
from scheduler.policy.prices import PriceTable
from scheduler.policy.types import BudgetId, Outcome
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


def charge_attempts(ended: Sequence[Billed]) -> None:
    """Charge these attempts to their budgets and write them into the ledger.

    1. see how their tasks were priced, and look up the prices at their start;
    2. lock their budgets;
    3. bill one after the other, as far as the budgets allow;
    4. write budgets and ledger in one statement, and alerts of thresholds that were reached.
    """
    if not ended:
        return
    billing = {each.row.task: store.read_billing(each.row.billing) for each in ended if each.row.billing is not None}
    usages = {each.row.lease: None if each.usage is None else orjson.loads(each.usage) for each in ended}
    pricings = {task: store.pricing_of(b.pricing) for task, b in billing.items() if b.pricing is not None}
    charged = {each.row.lease: [orjson.loads(usage) for usage in each.charged] for each in ended if each.charged}
    known = [*usages.values(), *(usage for several in charged.values() for usage in several)]
    models = {m for u in known if isinstance(m := (u or {}).get("model"), str)}
    book = load_book(models | {p.model for p in pricings.values() if p.model is not None})
    locked = store.lock_budgets({BudgetId(b) for each in ended for b in each.row.budgets or ()})
    accounts = {budget: Account(found.view) for budget, found in locked.items()}
    entries = []
    for each in sorted(ended, key=lambda one: one.row.lease):
        found = billing[each.row.task]
        pricing, usage = pricings.get(each.row.task), usages[each.row.lease]
        lines = bill(
            Ended(
                each.outcome,
                each.began,
                each.row.took_s,
                each.row.reserved or 0,
                pricing,
                _prices_at_start(pricing, usage, book, each.row.started_at),
                found.worker_second_nano,
                usage,
                tuple(
                    (call, _prices_at_start(pricing, call, book, each.row.started_at))
                    for call in charged.get(each.row.lease, ())
                ),
            )
        )
        entries.extend(_charged(each, lines, found, accounts, locked))
    changes = {
        budget: (account.spent - account.view.spent, account.view.reserved - account.reserved)
        for budget, account in accounts.items()
    }
    store.book_charges(changes, entries)
    tenants = {BudgetId(b): each.row.tenant for each in ended for b in each.row.budgets or ()}
    raise_crossed((accounts[b], tenants[b], found.thresholds) for b, found in locked.items())


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


def _charged(
    each: Billed,
    lines: Sequence[Line],
    found: store.Billing,
    accounts: Mapping[BudgetId, Account],
    locked: Mapping[BudgetId, store.LockedBudget],
) -> list[store.Entry]:
    """The entries of one attempt, charged: the first lines as far as the budgets go."""
    row = each.row
    budgets = [BudgetId(budget) for budget in row.budgets or ()]
    left = charge(
        sum(line.cost for line in lines),
        reserved=row.reserved or 0,
        accounts=[accounts[budget] for budget in budgets],
    )
    run = next((locked[budget].scope_id for budget in budgets if locked[budget].scope == "run"), None)
    entries = []
    for line in lines:
        paid = min(line.cost, left)
        left -= paid
        entries.append(
            store.Entry(
                row.lease,
                line.line,
                row.tenant,
                row.pool,
                row.task,
                run,
                budgets,
                found.kind,
                found.priority,
                line.model,
                line.cost,
                paid,
                store.usage_text(line.usage),
                line.source,
                line.price_source,
                "success" if each.succeeded else "waste",
            )
        )
    return entries
