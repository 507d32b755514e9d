"""The line of a remote worker to its server: through the door that opens, and again when it breaks, after a pause.

Knows nothing of handlers and attempts, and leaves to each door how it speaks. Whatever was not acknowledged on one
connection is in the session, and is said again on the next.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from scheduler.protocol.client import ClientSession
from scheduler.protocol.limits import PING_EVERY_S, PONG_WITHIN_S

logger = logging.getLogger(__name__)

Transport = Literal["auto", "websocket", "poll"]
"""How a worker speaks with the server; `auto`: by websocket, or by long polls where something on the way has none."""

BACKOFF_S: Final = (0.1, 10.0)
SILENCE_MAX_S: Final = PING_EVERY_S + PONG_WITHIN_S
"""The server pings every few seconds: after this it is gone."""
SILENCE_MIN_S: Final = 2.0
SILENCE_FRACTION: Final = 0.5
"""Of a lease's time without a word from the server, which answers heartbeats: the rest is for coming back elsewhere."""


def silence_max_s(ttl_s: float | None) -> float:
    """How long a server may be silent before its line counts as dead, with leases of `ttl_s` seconds or with none."""
    return SILENCE_MAX_S if ttl_s is None else min(SILENCE_MAX_S, max(SILENCE_MIN_S, ttl_s * SILENCE_FRACTION))


class DoorShutError(Exception):
    """Something between worker and server does not let this kind of connection through."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What a connection needs of its worker.

    `lock` guards the session. `heed` is called with each message that was understood, from any thread; `greeted` once
    for each connection on which the server took the worker in; `closing` ends everything.
    """

    url: str
    token: str | None
    session: ClientSession
    lock: threading.Lock
    heed: Callable[[Any], None]
    greeted: Callable[[], None]
    closing: threading.Event

    def silence_max_s(self) -> float:
        """How long the server may be silent now."""
        with self.lock:
            return silence_max_s(self.session.ttl_s())


class Door(Protocol):
    """One way to be connected."""

    @property
    def is_up(self) -> bool:
        """Whether the server took the worker in."""

    def serve(self) -> bool:
        """One connection from its beginning to its end; whether the server took the worker in.

        Raises OSError when there is no server, DoorShutError, and WorkerRefused.
        """

    def send(self, texts: Sequence[str]) -> None:
        """Say these. On a connection that is gone they are lost."""

    def close(self) -> None:
        """End `serve`, soon. Safe from any thread."""


class WorkerLine:
    """One worker's line to the server, over any number of connections. `doors` are tried in their order."""

    def __init__(self, doors: Sequence[Door], closing: threading.Event) -> None:
        self._doors = doors
        self._door = doors[0]
        self.closing = closing

    @property
    def is_up(self) -> bool:
        """Whether the server took the worker in."""
        return self._door.is_up

    def run(self) -> None:
        """Stay connected until `close`. Blocks; raises WorkerRefused where coming back is of no use."""
        faults = 0
        while not self.closing.is_set():
            faults = 1 if self._serve_once() else faults + 1
            first, most = BACKOFF_S
            self.closing.wait(min(most, first * 2 ** min(faults - 1, 10)) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter

    def _serve_once(self) -> bool:
        for door in self._doors:
            self._door = door
            try:
                return door.serve()
            except DoorShutError as error:
                logger.warning("%s", error)
            except OSError as error:
                logger.warning("cannot reach the server: %s", error)
                return False
        return False

    def send(self, texts: Sequence[str]) -> None:
        """Say these. On a connection that is gone they are lost: see the session."""
        self._door.send(texts)

    def close(self) -> None:
        """End `run`. Safe from any thread."""
        self.closing.set()
        self._door.close()
