"""Measures the hot paths in a database of its own, which is dropped at the end."""

import argparse
import asyncio
import os
import secrets
import subprocess
import sys
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson
import psycopg
from django.core.management import call_command
from django.core.management.base import BaseCommand
from psycopg import sql

from scheduler import conf
from scheduler.bench.scenarios import SCENARIOS
from scheduler.postgres import database_url, embedded_database

INSIDE = "CRONOQ_BENCH_DATABASE"


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
        if INSIDE in os.environ:
            asyncio.run(self._run(options["scenarios"] or list(SCENARIOS), options["set"]))
            return
        with embedded_database():
            sys.exit(_in_own_database())

    async def _run(self, names: list[str], settings: list[str]) -> None:
        chosen = {
            name: float(value) if "." in value else int(value) for name, value in (s.split("=") for s in settings)
        }
        await asyncio.to_thread(call_command, "migrate", verbosity=0)
        for name in names:
            for reading in await SCENARIOS[name](**chosen):
                self.stdout.write(orjson.dumps(asdict(reading)).decode())
                self.stdout.flush()


def _in_own_database() -> int:
    """Run the same command against a new database; returns its exit status."""
    config = conf.current()
    url = database_url(config)
    name = f"cronoq_bench_{secrets.token_hex(4)}"
    environment = os.environ | {
        INSIDE: name,
        "DATABASE_URL": urlunsplit(urlsplit(url)._replace(path=f"/{name}")),
        "CRONOQ_SECRET_KEY": secrets.token_urlsafe(50),
        "CRONOQ_ALLOWED_HOSTS": "127.0.0.1",
        "CRONOQ_ORIGINS": "http://127.0.0.1",
    }
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            # This very command with this very interpreter; nothing of it comes from outside.
            return subprocess.run([sys.executable, *sys.argv], check=False, env=environment).returncode  # noqa: S603 - see above
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
