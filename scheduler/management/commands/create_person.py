"""Makes an account of the console with a role, or gives one that is there another role."""

import argparse
import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.errors import CronoqError
from scheduler.policy.roles import Role
from scheduler.services.changes import Author
from scheduler.services.people import appoint


class Command(BaseCommand):
    """Read a password where one is needed, and appoint the person."""

    help = "Make an account with a role, or change the role of one. The password is asked for, or read from a pipe."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("username", help="what they sign in with")
        parser.add_argument("--role", required=True, choices=[role.value for role in Role])
        parser.add_argument("--tenant", help="slug of the one tenant that a tenant-viewer sees")
        parser.add_argument("--keep-password", action="store_true", help="change the role of somebody who has one")

    def handle(self, *args: Any, **options: Any) -> None:
        """Appoint, and say what was done."""
        try:
            new = appoint(
                options["username"],
                Role(options["role"]),
                tenant=options["tenant"],
                password=None if options["keep_password"] else _password(),
                author=Author("create_person", "system"),
            )
        except CronoqError as error:
            raise CommandError(error.detail) from error
        done = "can sign in" if new else "has the role now"
        self.stdout.write(f"{options['username']} {done}: {options['role']}.")


def _password() -> str:
    return getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
