"""The engine alone: what runs beside the web processes of an installation, as often as needed."""

import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand

from scheduler.engine.runner import Engine
from scheduler.management import sign_of_life

EXIT_INTERRUPTED = 130


class Command(BaseCommand):
    """Plan and run work until SIGINT or SIGTERM; a second one leaves running work to its leases."""

    help = "Run one engine."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until told to stop."""
        try:
            asyncio.run(run_engine())
        except asyncio.CancelledError:
            sys.exit(EXIT_INTERRUPTED)


async def run_engine() -> None:
    """Run one engine and show its signs of life. Raises CancelledError when told twice to stop."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    engine = asyncio.ensure_future(Engine().run(stop))

    def on_signal() -> None:
        if stop.is_set():
            engine.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    life = asyncio.ensure_future(sign_of_life.show())
    try:
        await engine
    finally:
        life.cancel()
        with suppress(asyncio.CancelledError):
            await life
