"""Compares budgets and the sums of days with the ledger and the live leases, and corrects them when told to."""

from __future__ import annotations

import sys
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandParser

from scheduler.policy.money import format_usd
from scheduler.services.reconcile import find_discord, find_drift, make_sums_anew, repair

ACTOR: Final = "manage.py reconcile"


class Command(BaseCommand):
    """`manage.py reconcile [--repair]`."""

    help = (
        "Say which budgets and sums disagree with the ledger or the live leases; exits with 1 if any, unless repaired."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the options."""
        parser.add_argument("--repair", action="store_true", help="correct them, with an audit event for each")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each budget, day and tenant that disagrees."""
        found = find_drift()
        for drift in found:
            self.stdout.write(
                f"budget {drift.budget} ({drift.scope} {drift.scope_id}):"
                f" spent ${format_usd(drift.said_spent)}, the ledger says ${format_usd(drift.spent)};"
                f" reserved ${format_usd(drift.said_reserved)}, leases say ${format_usd(drift.reserved)}"
            )
        wrong = find_discord()
        for each in wrong:
            self.stdout.write(
                f"the sums of {each.what} are ${format_usd(each.summed)}, the ledger says ${format_usd(each.ledger)}"
            )
        if not found:
            self.stdout.write("Every budget says what the ledger and the leases say.")
        if (found or wrong) and not options["repair"]:
            sys.exit(1)
        if found:
            self.stdout.write(f"Corrected {len(repair(found, actor=ACTOR))}.")
        if wrong:
            make_sums_anew(actor=ACTOR)
            self.stdout.write("The sums are made anew by the leading engine; until then pages read the ledger.")
