"""Measures the hot paths in a database of its own, which is dropped at the end."""

import argparse
import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson
from django.core.management import call_command
from django.core.management.base import BaseCommand

from scheduler.bench.forecasting import as_table
from scheduler.bench.scenarios import BY_NAME_ALONE, SCENARIOS
from scheduler.management.own_database import is_inside, run_in_own_database

FORECAST: Final = "forecast"


class Command(BaseCommand):
    """Run scenarios and print one JSON line for each reading."""

    help = "Measure the hot paths: one JSON line per reading, {scenario, value, unit, settings}."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "scenarios", nargs="*", help=f"any of: {', '.join(SCENARIOS)} (default: all but {', '.join(BY_NAME_ALONE)})"
        )
        parser.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a scenario's setting")
        parser.add_argument("--trace", type=Path, metavar="FILE.csv", help="forecast: judge on this trace as well")
        parser.add_argument("--only", default="", metavar="WORDS", help="forecast: workloads named so in part")
        parser.add_argument("--table", action="store_true", help="forecast: a table instead of lines of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the database, run this command again inside it, and drop it."""
        unknown = sorted(set(options["scenarios"]) - set(SCENARIOS))
        if unknown:
            self.stderr.write(f"There is no scenario {unknown[0]!r}; there are: {', '.join(SCENARIOS)}.")
            sys.exit(2)
        if is_inside():
            usual = [name for name in SCENARIOS if name not in BY_NAME_ALONE]
            asyncio.run(self._run(options["scenarios"] or usual, options))
            return
        sys.exit(run_in_own_database())

    async def _run(self, names: list[str], options: dict[str, Any]) -> None:
        chosen = {
            name: float(value) if "." in value else int(value) for name, value in (s.split("=") for s in options["set"])
        }
        await asyncio.to_thread(call_command, "migrate", verbosity=0)
        for name in names:
            own = {key: options[key] for key in ("trace", "only")} if name == FORECAST else {}
            readings = await SCENARIOS[name](**chosen, **own)
            if name == FORECAST and options["table"]:
                self.stdout.write(as_table(readings))
                continue
            for reading in readings:
                self.stdout.write(orjson.dumps(asdict(reading)).decode())
                self.stdout.flush()
