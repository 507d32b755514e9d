"""The engine alone: what runs beside the web processes of an installation, as often as needed."""

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from scheduler.engine.runner import Engine
from scheduler.interpreter import settle_in
from scheduler.management import sign_of_life

EXIT_INTERRUPTED = 130


class Command(BaseCommand):
    """Plan and run work until SIGINT or SIGTERM; a second one hands running work back instead of waiting for it."""

    help = "Run one engine."
    # It serves no routes: looking through them is most of its start, and what a restart after a crash waits for.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--sign-of-life", type=Path, metavar="FILE", help="touch FILE every second, for a probe")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until told to stop."""
        if not asyncio.run(run_engine(options["sign_of_life"])):
            sys.exit(EXIT_INTERRUPTED)


async def run_engine(sign: Path | None) -> bool:
    """Run one engine, showing its signs of life if asked to; returns whether it had the time to finish its work."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    hurry = asyncio.Event()
    engine = Engine()
    settle_in()

    def on_signal() -> None:
        if stop.is_set():
            hurry.set()
            engine.abandon()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    life = asyncio.ensure_future(sign_of_life.show(sign)) if sign else None
    try:
        await engine.run(stop)
    finally:
        if life:
            life.cancel()
            with suppress(asyncio.CancelledError):
                await life
    return not hurry.is_set()
