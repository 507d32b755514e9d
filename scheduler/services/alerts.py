"""Says where alerts of budgets go, and which are to be told now. The posting itself is the engine's."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Final

from django.db import transaction

from scheduler import conf
from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.alerts import DueAlert, crossed, message_of
from scheduler.policy.books import TargetRow
from scheduler.policy.budget import Account
from scheduler.policy.destinations import fault_in_url
from scheduler.policy.types import TenantId
from scheduler.services.changes import Author, check_reason, record, refuse
from scheduler.services.events import announce
from scheduler.services.tenants import load_tenant
from scheduler.store import alerts as store
from scheduler.store.money import LockedBudget

TAKE_MAX: Final = 20
FIRST_AGAIN_S: Final = 10.0
TRIES_MAX: Final = 10
"""The last of them some three hours after the first."""


def raise_crossed(accounts: Iterable[tuple[Account, TenantId, Iterable[float]]]) -> None:
    """Raise the alerts of budgets (each with its tenant and thresholds) that have reached one by what was charged."""
    reached = [
        store.Reached(account.view.id, tenant, part, account.limit, account.spent)
        for account, tenant, thresholds in accounts
        if account.limit is not None
        for part in crossed(account.view.spent, account.spent, account.limit, thresholds)
    ]
    if reached:
        store.raise_alerts(reached)


def raise_passed(tenant: TenantId, budget: LockedBudget) -> None:
    """Raise the alerts of the thresholds that a budget stands at or beyond, after its limit was changed."""
    view = budget.view
    if view.limit is not None and view.spent > 0:
        passed = crossed(-1, view.spent, view.limit, budget.thresholds)
        store.raise_alerts([store.Reached(view.id, tenant, part, view.limit, view.spent) for part in passed])


def take_due() -> list[DueAlert]:
    """Alerts to tell now; whoever takes them has until they are due again. Those without a listener are done."""
    with transaction.atomic():
        taken = store.take_due(TAKE_MAX, first_s=FIRST_AGAIN_S)
        for alert in taken:
            if alert.tries == 1:
                # Listeners to events and webhooks hear of it too, once.
                announce(load_tenant(alert.tenant).id, "alert.budget", message_of(alert))
            if not alert.targets:
                store.end_telling(alert.id, fault="nobody is told: there is no target for alerts")
    return [alert for alert in taken if alert.targets]


def told(alert: DueAlert, fault: str | None) -> None:
    """Keep how the telling went: done, to be tried again, or given up."""
    with transaction.atomic():
        if fault is None:
            store.end_telling(alert.id)
        elif alert.tries >= TRIES_MAX:
            store.end_telling(alert.id, fault=fault)
        else:
            store.note_fault(alert.id, fault)


def add_target(
    url: str, *, tenant: str | None, actor: str, reason: str = "", source: str = "ui"
) -> tuple[TargetRow, str]:
    """Have alerts of a tenant (None: of all) posted to a URL; the target and the secret they are signed with.

    Raises Refused for a URL that may not be posted to, NotFound for an unknown tenant, Conflict when it is there.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    fault = fault_in_url(url, conf.current().outgoing_networks)
    refuse((FieldError(("url",), fault),) if fault is not None else (), code="bad_url")
    secret = f"whsec_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        owner = None if tenant is None else load_tenant(tenant).id
        target = store.add_target(owner, url, secret)
        if target is None:
            errors = (FieldError(("url",), "Alerts are posted there already; remove that target first."),)
            raise Conflict("There is such a target already.", code="name_taken", errors=errors)
        record(author, "alert_target.add", f"alert_target:{target}", after={"url": url, "tenant": tenant})
    return TargetRow(target, tenant, url), secret


def remove_target(target: int, *, actor: str, reason: str = "", source: str = "ui") -> None:
    """Post no more alerts there. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        removed = store.remove_target(target)
        if removed is None:
            raise NotFound(f"There is no target {target}.", code="unknown_target")
        record(
            author, "alert_target.remove", f"alert_target:{target}", before={"url": removed[0], "tenant": removed[1]}
        )
