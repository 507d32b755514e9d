"""Compares budgets with the ledger and the live leases, and corrects them when told to."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.policy.money import format_usd
from scheduler.services.reconcile import find_drift, repair


class Command(BaseCommand):
    """`manage.py reconcile [--repair]`."""

    help = "Say which budgets disagree with the ledger or the live leases; exits with 1 when some do, unless repaired."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the options."""
        parser.add_argument("--repair", action="store_true", help="correct them, with an audit event for each")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each budget that disagrees."""
        found = find_drift()
        for drift in found:
            self.stdout.write(
                f"budget {drift.budget} ({drift.scope} {drift.scope_id}):"
                f" spent ${format_usd(drift.said_spent)}, the ledger says ${format_usd(drift.spent)};"
                f" reserved ${format_usd(drift.said_reserved)}, leases say ${format_usd(drift.reserved)}"
            )
        if not found:
            self.stdout.write("Every budget says what the ledger and the leases say.")
            return
        if not options["repair"]:
            sys.exit(1)
        done = repair(found, actor="manage.py reconcile")
        self.stdout.write(f"Corrected {len(done)}.")
