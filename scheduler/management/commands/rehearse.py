"""`manage.py rehearse NAME`: play a bad day through, and say which promises were kept."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.demo.rehearsal.api import RehearsalFailed
from scheduler.demo.rehearsal.progress import Progress
from scheduler.demo.rehearsal.repertoire import REPERTOIRE
from scheduler.management.own_database import is_inside, run_in_own_database

SCALE_MIN, SCALE_MAX = 0.01, 10.0


class Command(BaseCommand):
    """Works in a database of its own, with processes of its own; exits with 1 when a promise was broken."""

    help = "Rehearse a bad day: " + "; ".join(f"{each.name}: {each.story}" for each in REPERTOIRE.values()) + "."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument("name", choices=sorted(REPERTOIRE), metavar="NAME", help=", ".join(sorted(REPERTOIRE)))
        parser.add_argument("--scale", type=float, default=1.0, help="part of the full load (%(default)s)")
        parser.add_argument("--seed", type=int, default=1, help="repeat another draw (%(default)s)")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        parser.add_argument("--keep-logs", type=Path, metavar="FOLDER", help="leave the output of all processes there")

    def handle(self, *args: Any, **options: Any) -> None:
        """Rehearse; progress goes to standard error, the verdict to standard output."""
        if not SCALE_MIN <= options["scale"] <= SCALE_MAX:
            raise CommandError(f"--scale must be from {SCALE_MIN:g} to {SCALE_MAX:g}.")
        if not is_inside():
            sys.exit(run_in_own_database())
        call_command("migrate", verbosity=0, interactive=False)
        progress = Progress(sys.stderr)
        with tempfile.TemporaryDirectory(prefix="cronoq-rehearsal-") as temporary:
            folder = options["keep_logs"] or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            rehearsal = REPERTOIRE[options["name"]]
            try:
                verdict = asyncio.run(rehearsal.play(folder, options["scale"], options["seed"], progress))
            except RehearsalFailed as error:
                progress.done()
                raise CommandError(f"The rehearsal could not go on. {error}", returncode=2) from error
        progress.done()
        self.stdout.write(json.dumps(verdict.as_json(), indent=1) if options["json"] else verdict.as_text())
        if not verdict.kept:
            sys.exit(1)
