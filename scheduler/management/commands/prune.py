"""`manage.py prune --days 30`: forgets what ended long ago. To be run once a day; safe beside running engines."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from scheduler.errors import CronoqError
from scheduler.services.prune import DAY_S, ROWS_MAX, Keep, count_old, prune

DAYS: Final = 30.0
PAUSE_S: Final = 0.05


class Command(BaseCommand):
    """Bounded transactions with pauses between; end it whenever you like."""

    help = "Forget ended tasks and runs with all that is theirs, empty groups and old occurrences; with a limit, audit."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        option = parser.add_argument
        option("--days", type=float, default=DAYS, help="keep what has ended for so long (%(default)s)")
        option("--audit-days", type=float, help="keep the audit for so long; for ever when left out")
        option("--rows", type=int, default=ROWS_MAX, help="look at so many rows in one transaction (%(default)s)")
        option("--pause-s", type=float, default=PAUSE_S, help="rest between transactions (%(default)s)")
        option("--dry-run", action="store_true", help="say what is past its time, and forget nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Forget, and say how much."""
        audit_days = options["audit_days"]
        keep = Keep(options["days"] * DAY_S, None if audit_days is None else audit_days * DAY_S)
        if options["rows"] < 1 or options["pause_s"] < 0.0:
            raise CommandError("--rows must be at least 1, --pause-s at least 0.")
        try:
            if options["dry_run"]:
                old = count_old(keep)
                self.stdout.write(
                    f"Past their time: at most {old.tasks} tasks, {old.groups} empty groups, "
                    f"{old.audit_events} audit events."
                )
                return
            done = prune(keep, rest=lambda: time.sleep(options["pause_s"]), rows_max=options["rows"])
        except CronoqError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(
            f"Forgotten: {done.tasks} tasks, {done.runs} runs, {done.groups} groups, {done.occurrences} occurrences, "
            f"{done.audit_events} audit events."
        )
