"""The web server inside ``serve``: Daphne on Twisted's asyncio reactor, in the main thread.

Decides how it listens and how it stops. It must never decide what else the process runs.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

# Installs the asyncio reactor; must come before any other import of Twisted.
from daphne.server import Server, twisted_loop
from twisted.internet import defer
from twisted.internet import reactor as installed_reactor
from twisted.internet.asyncioreactor import AsyncioSelectorReactor

logger = logging.getLogger(__name__)

# The module is a placeholder for whichever reactor was installed.
reactor = cast("AsyncioSelectorReactor", installed_reactor)

BACKLOG = 1024
# Requests and sockets that do not end by themselves are cut off after this.
DRAIN_TIMEOUT_S = 3.0


class PortTaken(RuntimeError):
    """The address cannot be listened on; the message is a sentence for the operator."""


class WebServer(Server):  # type: ignore[misc]  # daphne carries no types
    """Daphne with a shutdown that does not stumble over idle connections."""

    def kill_all_applications(self) -> "defer.Deferred[object]":
        """Cancel what still runs and wait for it, but not for ever."""
        running = [
            instance
            for details in self.connections.values()
            if (instance := details.get("application_instance")) is not None and not instance.done()
        ]
        for instance in running:
            instance.cancel()
        if not running:
            return defer.succeed(None)
        # asyncio.wait gives up on what ignores its cancellation, unlike gather.
        return defer.Deferred.fromFuture(
            asyncio.ensure_future(asyncio.wait(running, timeout=DRAIN_TIMEOUT_S), loop=twisted_loop)
        )


def listen(host: str, port: int) -> socket.socket:
    """Take the port of an IPv4 address now, before anything slow starts. Raises PortTaken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise PortTaken(f"Cannot listen on {host}:{port} ({reason}). Set PORT to another one.") from error
    listener.setblocking(False)  # noqa: FBT003  # the library's signature
    return listener


def serve(application: object, listener: socket.socket, *, when_listening: Callable[[], None]) -> None:
    """Serve until ``stop`` is called; signals are the caller's. Blocks."""
    server = WebServer(
        application=application,
        # The server takes the descriptor over.
        endpoints=[f"fd:fileno={listener.detach()}"],
        signal_handlers=False,
        ready_callable=lambda: twisted_loop.call_soon(when_listening),
        server_name="cronoq",
        http_timeout=120,
        websocket_handshake_timeout=10,
        application_close_timeout=5,
    )
    server.run()


def stop() -> None:
    """Stop serving; callable from any thread and more than once."""
    twisted_loop.call_soon_threadsafe(_stop_reactor)


def _stop_reactor() -> None:
    if reactor.running:
        reactor.stop()  # type: ignore[no-untyped-call]  # Twisted types it partly


def on_signal(number: int, handle: Callable[[], None]) -> None:
    """Call ``handle`` on the server's loop when the process receives a signal."""
    twisted_loop.add_signal_handler(number, handle)
