"""The websocket of a remote worker: connects, comes back, notices a dead line, and sends several messages in a frame.

Knows nothing of handlers and attempts. It must never forget a report: what was not acknowledged is in the session, and
is said again on the next connection.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from scheduler.protocol.client import ClientSession
from scheduler.protocol.fields import BadMessage
from scheduler.protocol.limits import FINAL, PING_EVERY_S, PONG_WITHIN_S
from scheduler.protocol.messages import Ready, frames
from scheduler.sdk.errors import WorkerRefused

logger = logging.getLogger(__name__)

BACKOFF_S: Final = (0.1, 10.0)
OPEN_S: Final = 10.0
CLOSE_S: Final = 0.5
"""How long a closing handshake is waited for; a line that is dead answers none."""
LISTEN_S: Final = 0.5
"""How often a silent line is thought about."""
SILENCE_MAX_S: Final = PING_EVERY_S + PONG_WITHIN_S
"""The server pings every few seconds: after this it is gone."""
SILENCE_MIN_S: Final = 2.0
SILENCE_FRACTION: Final = 0.5
"""Of a lease's time without a word from the server, which answers heartbeats: the rest is for coming back elsewhere."""
LEASE_BYTES_MAX: Final = 32 * 2**20
"""Of one message from the server: a payload and the results of the tasks before it."""


def silence_max_s(ttl_s: float | None) -> float:
    """How long a server may be silent before its line counts as dead, with leases of `ttl_s` seconds or with none."""
    return SILENCE_MAX_S if ttl_s is None else min(SILENCE_MAX_S, max(SILENCE_MIN_S, ttl_s * SILENCE_FRACTION))


class SocketLine:
    """One worker's line to the server, over any number of connections.

    `lock` guards the session. `heed` is called with each message that was understood, on the thread of `run`.
    """

    def __init__(
        self,
        url: str,
        session: ClientSession,
        lock: threading.Lock,
        *,
        heed: Callable[[Any], None],
        greeted: Callable[[], None],
    ) -> None:
        self.closing = threading.Event()
        self._url = url
        self._session = session
        self._lock = lock
        self._heed = heed
        self._greeted = greeted
        self._batches = False
        self._connection: ClientConnection | None = None

    @property
    def is_up(self) -> bool:
        """Whether the server took the worker in."""
        return self._connection is not None

    def run(self) -> None:
        """Stay connected until `close`. Blocks; raises WorkerRefused where coming back is of no use."""
        faults = 0
        while not self.closing.is_set():
            try:
                if self._connect_once():
                    faults = 0
            except (OSError, InvalidHandshake, TimeoutError) as error:
                logger.warning("cannot reach the server: %s", error)
            faults += 1
            first, most = BACKOFF_S
            self.closing.wait(min(most, first * 2 ** min(faults - 1, 10)) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter

    def send(self, texts: Sequence[str]) -> None:
        """Say these, in as few frames as the server takes. On a line that is gone they are lost: see the session."""
        connection = self._connection
        if connection is not None and texts:
            with suppress(ConnectionClosed, OSError):
                for frame in frames(texts) if self._batches else texts:
                    connection.send(frame)

    def close(self) -> None:
        """End `run`. Safe from any thread."""
        self.closing.set()
        connection = self._connection
        if connection is not None:
            with suppress(ConnectionClosed, OSError):
                connection.close()

    def _connect_once(self) -> bool:
        """One connection, from hello to its end; whether the server took the worker in."""
        greeted = False
        with connect(
            self._url,
            max_size=LEASE_BYTES_MAX,
            open_timeout=OPEN_S,
            close_timeout=CLOSE_S,
            ping_interval=None,
            compression=None,
            proxy=None,
        ) as connection:
            with self._lock:
                hello = self._session.hello()
            connection.send(hello)
            try:
                for said in self._words(connection):
                    if isinstance(said, Ready):
                        greeted = True
                        self._batches = said.batches
                        self._connection = connection
                        self._greeted()
                    self._heed(said)
            except ConnectionClosed:
                pass
            finally:
                self._connection = None
        code = connection.close_code or 0
        if code in FINAL and not self.closing.is_set():
            raise WorkerRefused(connection.close_reason or f"the server closed the connection: {code}", code)
        return greeted

    def _words(self, connection: ClientConnection) -> Iterator[Any]:
        """What is heard until the line is closed, or was silent for too long."""
        heard_at = time.monotonic()
        while True:
            try:
                text = connection.recv(timeout=LISTEN_S)
            except TimeoutError:
                with self._lock:
                    ttl_s = self._session.ttl_s()
                if time.monotonic() - heard_at > silence_max_s(ttl_s):
                    logger.warning("the server is silent; connecting again")
                    return
                continue
            with self._lock:
                several = self._session.receive(str(text))
            for said in several:
                if isinstance(said, BadMessage):
                    logger.warning("a message of the server was not understood: %s", said.detail)
                else:
                    yield said
            heard_at = time.monotonic()
