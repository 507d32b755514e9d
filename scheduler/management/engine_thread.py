"""The engine in a thread with a loop of its own, for processes whose main thread has other work.

Decides how an engine is told to stop from outside its loop. It must never decide what an engine does.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

from scheduler.engine.runner import Engine

logger = logging.getLogger(__name__)


class EngineThread:
    """Runs one engine. ``when_broken`` is called, in the engine's thread, if it ends without having been asked to."""

    def __init__(self, *, when_broken: Callable[[], None]) -> None:
        self._when_broken = when_broken
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._begun = threading.Event()
        self._asked = threading.Event()
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def start(self) -> None:
        """Start the engine; returns once it can be stopped."""
        self._thread.start()
        self._begun.wait()

    def stop(self) -> None:
        """Let running work end within the engine's own grace, and wait for that. Callable more than once."""
        self._asked.set()
        if self._loop is not None and self._stop is not None:
            try:
                self._loop.call_soon_threadsafe(self._stop.set)
            except RuntimeError:
                logger.debug("the engine had ended before it was told to")
        if self._thread.is_alive():
            self._thread.join()

    def abandon(self) -> None:
        """Have the engine hand running work back at once; follows a ``stop`` that still waits."""
        if self._engine is not None and self._thread.is_alive():
            self._engine.abandon()

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception:
            logger.exception("the engine broke down")
        finally:
            self._begun.set()
            if not self._asked.is_set():
                self._when_broken()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._engine = Engine()
        running = asyncio.create_task(self._engine.run(self._stop))
        # The engine has begun once the loop has come round to it.
        self._loop.call_soon(self._begun.set)
        await running
