"""Measures the hot paths in a database of its own, which is dropped at the end."""

import argparse
import asyncio
import sys
from dataclasses import asdict
from typing import Any

import orjson
from django.core.management import call_command
from django.core.management.base import BaseCommand

from scheduler.bench.scenarios import SCENARIOS
from scheduler.management.own_database import is_inside, run_in_own_database


class Command(BaseCommand):
    """Run scenarios and print one JSON line for each reading."""

    help = "Measure the hot paths: one JSON line per reading, {scenario, value, unit, settings}."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("scenarios", nargs="*", help=f"any of: {', '.join(SCENARIOS)} (default: all)")
        parser.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a scenario's setting")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the database, run this command again inside it, and drop it."""
        unknown = sorted(set(options["scenarios"]) - set(SCENARIOS))
        if unknown:
            self.stderr.write(f"There is no scenario {unknown[0]!r}; there are: {', '.join(SCENARIOS)}.")
            sys.exit(2)
        if is_inside():
            asyncio.run(self._run(options["scenarios"] or list(SCENARIOS), options["set"]))
            return
        sys.exit(run_in_own_database())

    async def _run(self, names: list[str], settings: list[str]) -> None:
        chosen = {
            name: float(value) if "." in value else int(value) for name, value in (s.split("=") for s in settings)
        }
        await asyncio.to_thread(call_command, "migrate", verbosity=0)
        for name in names:
            for reading in await SCENARIOS[name](**chosen):
                self.stdout.write(orjson.dumps(asdict(reading)).decode())
                self.stdout.flush()
