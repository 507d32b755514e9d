"""Begins the periods of tenants' budgets, and lets operators set what may be spent in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.periods import period_at
from scheduler.policy.types import BudgetId, TenantId, TenantView
from scheduler.services.again import again
from scheduler.services.alerts import raise_passed
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.services.tenants import add_tenant, edit_tenant
from scheduler.store import accounts, spending
from scheduler.store import money as store

ALERTS_MAX: Final = 10


def open_periods(tenants: Sequence[TenantView], now: float) -> dict[TenantId, TenantView]:
    """These tenants with the budget of the period that `now` is in, which begins here.

    Part of the transaction that needs it. One whose period somebody else began at this moment is missing.
    """
    if not tenants:
        return {}
    views = {view.id: view for view in tenants}
    periods = [
        store.NewPeriod(each.tenant, *period_at(now, each.time_zone, after=each.after), each.monthly_nano)
        for each in store.load_openings(list(views))
    ]
    opened = store.open_budgets(periods)
    return {tenant: replace(views[tenant], budget=budget) for tenant, budget in opened.items()}


def follow_burn() -> int:
    """Let the marks move on that spending per hour is measured from; how many did."""
    with transaction.atomic():
        return spending.mark_burn()


@again
def declare_tenant(slug: str, *, budget: Mapping[str, Any], actor: str, reason: str = "", **settings: Any) -> None:
    """Declare a tenant with `settings` as `add_tenant` takes them, and its budget as `edit_budget` does, or neither."""
    with transaction.atomic():
        row = add_tenant(slug, actor=actor, reason=reason, source="api", **settings)
        if budget:
            edit_budget(slug, row.version, budget, actor=actor, reason=reason, source="api")


@again
def change_tenant(
    slug: str, version: int, changes: Mapping[str, Any], *, budget: Mapping[str, Any], actor: str, reason: str = ""
) -> None:
    """Change a tenant as `edit_tenant` does, and its budget as `edit_budget` does, or neither."""
    with transaction.atomic():
        if changes or not budget:
            version = edit_tenant(slug, version, changes, actor=actor, reason=reason, source="api").version
        if budget:
            edit_budget(slug, version, budget, actor=actor, reason=reason, source="api")


@again
def edit_budget(
    slug: str, version: int, changes: Mapping[str, Any], *, actor: str, reason: str = "", source: str = "ui"
) -> None:
    """Change what a tenant may spend: `limit` a month, `alert_at`, `success_target`.

    Amounts in nano-dollars. The present period follows at once, and what waited for it starts. Raises NotFound,
    VersionConflict when `version` of the tenant is not the current one, Refused with every fault.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_budget(slug)
        if row.version != version:
            raise VersionConflict(f"The tenant {slug!r}", sent=version, current=row.version)
        declared = _declared(row)
        wanted = declared | dict(changes)
        refuse(tuple(_faults(wanted)), code="bad_budget")
        if not accounts.edit_monthly(
            slug,
            version=version,
            limit=wanted["limit"],
            alert_at=wanted["alert_at"],
            target=wanted["success_target"],
        ):
            raise VersionConflict(f"The tenant {slug!r}", sent=version, current=load_budget(slug).version)
        _follow(row, wanted)
        before, after = differences(declared, wanted)
        record(author, "budget.edit", f"tenant:{slug}", before=before, after=after)


def _follow(row: accounts.BudgetRow, wanted: Mapping[str, Any]) -> None:
    """The present period gets the new limit; thresholds that it has passed by that are told."""
    budget = begin_budget(row)
    store.lock_budgets([budget])
    accounts.edit_period(budget, limit=wanted["limit"])
    raise_passed(row.tenant, store.lock_budgets([budget])[budget])


def begin_budget(row: accounts.BudgetRow) -> BudgetId:
    """The budget of a tenant's present period, begun if it was not. Part of the transaction that needs it.

    Raises Conflict when the period ends at this very moment.
    """
    budget = row.budget
    if budget is None:
        opened = open_periods([TenantView(row.tenant)], row.now)
        view = opened[row.tenant].budget if row.tenant in opened else None
        budget = view.id if view is not None else load_budget(row.slug).budget
    if budget is None:
        raise Conflict("The budget's period ended at this very moment; try again.", code="period_ended")
    return budget


def load_budget(slug: str) -> accounts.BudgetRow:
    """The budget of a tenant as it stands. Raises NotFound."""
    rows = accounts.load_budgets(slugs=[slug]) if "\x00" not in slug else []
    if not rows:
        raise NotFound(f"There is no tenant {slug!r}.", code="unknown_tenant")
    return rows[0]


def _declared(row: accounts.BudgetRow) -> dict[str, Any]:
    return {
        "limit": row.monthly,
        "alert_at": list(row.alert_at),
        "success_target": row.success_target,
    }


def _faults(wanted: Mapping[str, Any]) -> Iterator[FieldError]:
    parts = wanted["alert_at"]
    if len(parts) > ALERTS_MAX or len(set(parts)) != len(parts) or not all(0 < part <= 1 for part in parts):
        yield FieldError(("alert_at",), f"Give at most {ALERTS_MAX} different parts of the limit, above 0 and up to 1.")
