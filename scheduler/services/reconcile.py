"""Recomputes what budgets say from the ledger and the live leases, and corrects those that disagree.

In health there is nothing to find: both are written in the same transactions. It is for what hands and restores do.
"""

from __future__ import annotations

from django.db import transaction

from scheduler.services.changes import Author, record
from scheduler.services.summing import begin_anew, find_discord
from scheduler.store import accounts
from scheduler.store import money as store
from scheduler.store.accounts import Drift

__all__ = ["Drift", "find_discord", "find_drift", "make_sums_anew", "repair"]


def find_drift() -> list[Drift]:
    """The budgets that disagree with the books, as of one moment."""
    return accounts.load_drift()


def repair(found: list[Drift], *, actor: str, reason: str = "") -> list[Drift]:
    """Correct those of these that still disagree once nobody else can change them; returns what was corrected."""
    if not found:
        return []
    budgets = [drift.budget for drift in found]
    with transaction.atomic():
        store.lock_budgets(budgets)
        # A statement of its own: it sees what was committed before the locks were granted.
        still = accounts.load_drift(budgets)
        for drift in still:
            accounts.correct_budget(drift)
            before = {"spent_nano": drift.said_spent, "reserved_nano": drift.said_reserved}
            after = {"spent_nano": drift.spent, "reserved_nano": drift.reserved}
            author = Author(actor, "system", reason)
            record(author, "budget.repair", f"budget:{drift.budget}", before=before, after=after)
    return still


def make_sums_anew(*, actor: str, reason: str = "") -> None:
    """Throw away the sums of days, to be made again from the ledger."""
    with transaction.atomic():
        begin_anew()
        record(Author(actor, "system", reason), "sums.repair", "sums", before=None, after=None)
