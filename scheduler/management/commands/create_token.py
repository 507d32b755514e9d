"""Makes a bearer token from the command line; it is printed this once."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.errors import CronoqError
from scheduler.policy.declarations import SCOPES
from scheduler.services.tokens import create_token


class Command(BaseCommand):
    """Print a new token on standard output, alone on its line."""

    help = "Make a bearer token. Only its hash is stored: keep what is printed."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--tenant", help="slug of the tenant it acts for; every tenant when left out")
        parser.add_argument("--scope", action="append", required=True, choices=SCOPES, help="repeat for several")
        parser.add_argument("--pool", action="append", help="submit to these pools only; repeat for several")
        parser.add_argument("--name", default="", help="what people will know it by")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make and print it."""
        try:
            made = create_token(
                scopes=options["scope"],
                tenant=options["tenant"],
                pools=options["pool"],
                name=options["name"],
                actor="create_token",
                source="system",
            )
        except CronoqError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(made.text)
