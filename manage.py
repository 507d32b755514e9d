#!/usr/bin/env python
"""Command line of the project. Brings the embedded PostgreSQL up around commands that need a database."""

import os
import signal
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from scheduler.conf import ConfigurationError
from scheduler.postgres import PostgresError, embedded_database

# Commands that read only the source tree, so that they work (and stay quick) without a server.
NEEDS_NO_DATABASE = frozenset({"check", "collectstatic", "help", "makemessages", "provider_sim", "version"})
TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Run one management command; configuration and database faults end as one sentence and exit code 1."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cronoq_app.settings")
    # A terminated command ends like an interrupted one: through its clean-up, which may stop the embedded server.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(TERMINATED))
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "help")
    try:
        if command in NEEDS_NO_DATABASE or "--help" in sys.argv:
            execute_from_command_line(sys.argv)
            return
        with embedded_database():
            execute_from_command_line(sys.argv)
    except (ConfigurationError, ImproperlyConfigured, PostgresError) as error:
        sys.exit(f"{command}: {error}")


if __name__ == "__main__":
    main()
