"""Raises a tenant's budget for a while. A top-up ends by itself, by the database's clock, or when somebody ends it.

What was spent while it lasted stays spent; what it still holds back of the limit afterwards is not taken from anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.books import TopUpRow
from scheduler.policy.money import NANO, USD_MAX, format_usd
from scheduler.policy.types import BudgetId
from scheduler.services.again import again
from scheduler.services.alerts import raise_passed
from scheduler.services.budgets import begin_budget, load_budget
from scheduler.services.changes import Author, check_reason, record, refuse
from scheduler.store import accounts
from scheduler.store import money as money_store
from scheduler.store import top_ups as store

AT_ONCE_MAX: Final = 20
FOR_MAX_S: Final = 366 * 86_400.0


@again
def add_top_up(
    slug: str, amount: int, author: Author, *, until: float | None = None, for_s: float | None = None
) -> TopUpRow:
    """Let a tenant spend so many nano-dollars more, `until` then (Unix seconds) or `for_s` seconds from now.

    It ends with the budget's period at the latest. What waited for money may start once the caller rings. Raises
    NotFound, Refused with every fault, Conflict when the period ends at this very moment.
    """
    check_reason(author)
    with transaction.atomic():
        row = load_budget(slug)
        refuse(tuple(_faults(row, amount, author, until=until, for_s=for_s)), code="bad_top_up")
        budget = begin_budget(row)
        money_store.lock_budgets([budget])
        added = store.add_top_up(
            budget, amount, until=until, for_s=for_s, actor=author.actor[:200], reason=author.reason
        )
        if added is None:
            raise Conflict("The budget's period ended at this very moment; try again.", code="period_ended")
        if store.keep_top_ups(budget).number > AT_ONCE_MAX:
            detail = f"A budget has at most {AT_ONCE_MAX} top-ups at once; end one of them first."
            refuse((FieldError(("amount",), detail),), code="bad_top_up")
        raise_passed(row.tenant, money_store.lock_budgets([budget])[budget])
        record(author, "budget.top_up", f"tenant:{slug}", after=_told(added))
        return added


@again
def end_top_up(slug: str, top_up: int, author: Author) -> TopUpRow:
    """End a top-up now. Of one that is over, nothing changes. Raises NotFound."""
    check_reason(author)
    with transaction.atomic():
        row = load_budget(slug)
        found = _load(row, top_up)
        if row.budget is not None:
            money_store.lock_budgets([BudgetId(row.budget)])
        budget = store.end_top_up(top_up, row.tenant)
        if budget is None:
            return found
        store.keep_top_ups(budget)
        raise_passed(row.tenant, money_store.lock_budgets([budget])[budget])
        record(author, "budget.end_top_up", f"tenant:{slug}", before=_told(found))
        return _load(row, top_up)


def _load(row: accounts.BudgetRow, top_up: int) -> TopUpRow:
    found = store.load_top_ups(row.tenant, top_up=top_up, rows_max=1)
    if not found:
        raise NotFound(f"There is no top-up {top_up} of {row.slug!r}.", code="unknown_top_up")
    return found[0]


def _told(row: TopUpRow) -> dict[str, Any]:
    return {"top_up": row.id, "amount_usd": format_usd(row.amount), "ends_at": row.ends_at, "reason": row.reason}


def _faults(
    row: accounts.BudgetRow, amount: int, author: Author, *, until: float | None, for_s: float | None
) -> Iterator[FieldError]:
    limit = row.monthly if row.budget is None else row.limit
    if limit is None:
        yield FieldError(("amount",), "There is no limit that could be topped up.")
    if not 0 < amount <= USD_MAX * NANO:
        yield FieldError(("amount",), f"Say how much is added: more than 0 and at most {USD_MAX} dollars.")
    if (until is None) == (for_s is None):
        yield FieldError(("until",), "Say until when it is added, or for how long.")
    if until is not None and not row.now < until <= row.now + FOR_MAX_S:
        yield FieldError(("until",), "Name a time in the future, at most a year from now.")
    if for_s is not None and not 0 < for_s <= FOR_MAX_S:
        yield FieldError(("for_s",), "Name a time of more than 0 seconds and at most a year.")
    if not author.reason.strip():
        yield FieldError(("reason",), "Say why: whoever looks at the bill will ask.")
