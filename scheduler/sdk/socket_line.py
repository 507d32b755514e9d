"""A remote worker's websocket: notices a dead connection, and sends several messages in a frame.

Knows nothing of handlers and attempts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from scheduler.protocol.fields import BadMessage
from scheduler.protocol.limits import FINAL
from scheduler.protocol.messages import Ready, frames
from scheduler.sdk.errors import SchedulerError, WorkerRefused
from scheduler.sdk.line import DoorShutError, Wire

logger = logging.getLogger(__name__)

OPEN_S: Final = 10.0
CLOSE_S: Final = 0.5
"""How long a closing handshake is waited for; a line that is dead answers none."""
LISTEN_S: Final = 0.5
"""How often a silent line is thought about."""
LEASE_BYTES_MAX: Final = 32 * 2**20
"""Of one message from the server: a payload and the results of the tasks before it."""
NOBODY_THERE: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""What proxies say while there is no server behind them; any other answer means that they know no websockets."""


def socket_url(url: str) -> str:
    """Where workers of a server connect. Raises SchedulerError."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in {"ws", "wss"} or not parts.netloc:
        raise SchedulerError(f"{url!r} is no address of a server: http://host:port")
    return urlunsplit((scheme, parts.netloc, f"{parts.path.rstrip('/')}/ws/worker/", "", ""))


class SocketLine:
    """A worker's connections by websocket, one after the other."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._url = socket_url(wire.url)
        self._batches = False
        self._connection: ClientConnection | None = None

    @property
    def is_up(self) -> bool:
        """Whether the server took the worker in."""
        return self._connection is not None

    def serve(self) -> bool:
        """One connection, from hello to its end; whether the server took the worker in.

        Raises OSError when there is no server, DoorShutError where no websocket gets through, and WorkerRefused.
        """
        try:
            return self._serve()
        except InvalidStatus as error:
            if error.response.status_code in NOBODY_THERE:
                raise ConnectionError(str(error)) from error
            raise DoorShutError(f"no websocket gets through: {error}") from error
        except InvalidHandshake as error:
            raise DoorShutError(f"no websocket gets through: {error}") from error

    def send(self, texts: Sequence[str]) -> None:
        """Say these, in as few frames as the server takes. On a connection that is gone they are lost."""
        connection = self._connection
        if connection is not None and texts:
            with suppress(ConnectionClosed, OSError):
                for frame in frames(texts) if self._batches else texts:
                    connection.send(frame)

    def close(self) -> None:
        """End `serve`. Safe from any thread."""
        connection = self._connection
        if connection is not None:
            with suppress(ConnectionClosed, OSError):
                connection.close()

    def _serve(self) -> bool:
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
            with self._wire.lock:
                hello = self._wire.session.hello()
            connection.send(hello)
            try:
                for said in self._words(connection):
                    if isinstance(said, Ready):
                        greeted = True
                        self._batches = said.batches
                        self._connection = connection
                        self._wire.greeted()
                    self._wire.heed(said)
            except ConnectionClosed:
                pass
            finally:
                self._connection = None
        code = connection.close_code or 0
        if code in FINAL and not self._wire.closing.is_set():
            raise WorkerRefused(connection.close_reason or f"the server closed the connection: {code}", code)
        return greeted

    def _words(self, connection: ClientConnection) -> Iterator[Any]:
        """What is heard until the line is closed, or was silent for too long."""
        heard_at = time.monotonic()
        while True:
            try:
                text = connection.recv(timeout=LISTEN_S)
            except TimeoutError:
                if time.monotonic() - heard_at > self._wire.silence_max_s():
                    logger.warning("the server is silent; connecting again")
                    return
                continue
            with self._wire.lock:
                several = self._wire.session.receive(str(text))
            for said in several:
                if isinstance(said, BadMessage):
                    logger.warning("a message of the server was not understood: %s", said.detail)
                else:
                    yield said
            heard_at = time.monotonic()
