"""`manage.py provider_sim`: run the simulated model provider."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.demo.provider_sim.server import run
from scheduler.demo.provider_sim.settings import add_arguments, settings_from


class Command(BaseCommand):
    """Needs neither the database nor the settings' checks."""

    help = "Run a simulated model provider: OpenAI-compatible, with limits, latency and scripted faults."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The simulator's own options."""
        add_arguments(parser)

    def handle(self, **options: Any) -> None:
        """Serve until told to stop."""
        try:
            settings = settings_from(options)
        except ValueError as error:
            raise CommandError(str(error)) from error
        status = run(settings)
        if status:
            sys.exit(status)
