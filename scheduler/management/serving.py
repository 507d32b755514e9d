"""The parts of one serving process, and the order in which they come and go.

The web server has the main thread and its loop; the engine has a thread and a loop of its own, so that a burst of
requests on the web's loop never queues in front of a dispatch. It must never hold a decision of the product: each part
works the same when run alone.
"""

import logging
import os
import signal
import socket
import threading

from channels.routing import get_default_application

from scheduler import conf
from scheduler.management import credentials, web_server
from scheduler.management.children import Child, Children
from scheduler.management.engine_thread import EngineThread
from scheduler.postgres import EmbeddedServer, PostgresError

logger = logging.getLogger(__name__)

DATABASE_CHECK_INTERVAL_S = 1.0
# After a second signal, the engine has this long to hand its work back, and the process this long to end by itself.
HAND_BACK_S = 2.0
FORCED_EXIT_S = 6.0
EXIT_BROKEN = 1
EXIT_INTERRUPTED = 130

# What the demo's provider allows; the pool's resources are declared with the same figures.
PROVIDER_LIMITS = ("--rate", "50", "--burst", "100", "--concurrency", "20")


class Serving:
    """One serving process."""

    def __init__(self, config: conf.Config) -> None:
        self._config = config
        self._children = Children()
        self._engine = EngineThread(when_broken=self._on_broken)
        self._ending = threading.Event()
        self._status = 0

    def run(self, listener: socket.socket) -> int:
        """Serve until told to stop; returns the exit status. Blocks.

        1. watch the embedded database
        2. start the provider simulator
        3. start the engine
        4. serve the web, and once it listens, start the demo workload
        5. on a signal, stop the engine while reports can still arrive, then the children, then the web
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            web_server.on_signal(number, self._on_signal)
        watch = threading.Thread(target=self._watch_database, name="watch-database")
        try:
            if self._config.embedded:
                watch.start()
            if self._config.embedded or self._config.demo:
                self._children.start(_provider(self._config))
            self._engine.start()
            web_server.serve(get_default_application(), listener, when_listening=self._on_listening)
        finally:
            self._ending.set()
            if self._status != EXIT_INTERRUPTED:
                self._engine.stop()
            self._children.stop()
            if watch.is_alive():
                watch.join()
        return self._status

    def _on_listening(self) -> None:
        """Say where we are, and let the demo begin."""
        _say(f"Serving {credentials.url(self._config)}")
        _say(f"Sign-in and tokens: {credentials.path(self._config)}. Ctrl-C stops.")
        if self._config.demo:
            self._children.start(_demo(self._config))

    def _on_signal(self) -> None:
        """Stop in order the first time, at once the second."""
        if self._ending.is_set():
            self._force()
            return
        self._ending.set()
        _say("Stopping. Once more to stop at once.")
        threading.Thread(target=self._stop_in_order, name="stop", daemon=True).start()

    def _stop_in_order(self) -> None:
        self._engine.stop()
        self._children.stop()
        web_server.stop()

    def _force(self) -> None:
        """Hand running work back; what does not get that far is left to its leases."""
        self._status = EXIT_INTERRUPTED
        self._engine.abandon()
        self._children.kill()
        for timer in (threading.Timer(HAND_BACK_S, web_server.stop), threading.Timer(FORCED_EXIT_S, _exit_now)):
            timer.daemon = True
            timer.start()

    def _on_broken(self) -> None:
        """End with an error when the engine is gone: nothing would be scheduled any more."""
        self._status = EXIT_BROKEN
        self._ending.set()
        self._children.stop()
        web_server.stop()

    def _watch_database(self) -> None:
        """Start the embedded server again when it dies under us."""
        server = EmbeddedServer(self._config.data_dir)
        while not self._ending.wait(DATABASE_CHECK_INTERVAL_S):
            if server.is_listening():
                continue
            logger.warning("the embedded PostgreSQL is gone; starting it again")
            try:
                server.revive()
            except PostgresError as error:
                logger.error("%s", error)  # noqa: TRY400  # the message is the whole story


def _exit_now() -> None:
    os._exit(EXIT_INTERRUPTED)


def _say(sentence: str) -> None:
    """Tell the person at the terminal."""
    print(sentence, flush=True)  # noqa: T201  # this is what a person waits for, not a log line


def _provider(config: conf.Config) -> Child:
    """Return the simulator that stands in for a model provider."""
    port = str(credentials.provider_port(config))
    return Child("provider simulator", ("-m", "scheduler.demo.provider_sim", "--port", port, *PROVIDER_LIMITS))


def _demo(config: conf.Config) -> Child:
    """Return the program that submits the demo's work, over REST like any client."""
    return Child("demo workload", ("-m", "scheduler.demo.workload", "--credentials", str(credentials.path(config))))
