"""Tells engines and waiting clients that something happened, so that they need not wait for their next poll.

A hint, never the truth: polling finds everything that a lost ring would have announced. A ring reaches the listeners
of this process at once and the other processes through NOTIFY, sent outside any transaction, at most once per few
milliseconds, with nothing in the payload but the sender's id.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import psycopg
from psycopg import sql

from scheduler import conf
from scheduler.postgres import database_url

logger = logging.getLogger(__name__)

DEBOUNCE_S: Final = 0.005
RECONNECT_S: Final = 1.0
LISTEN_POLL_S: Final = 0.5


class Bell(StrEnum):
    """What happened; each is a NOTIFY channel."""

    WORK = "cronoq_work"
    """There may be something to start or to stop."""
    GIVEN = "cronoq_given"
    """A plan gave leases to workers of other processes."""
    SETTLED = "cronoq_settled"
    """Attempts have ended."""


Listener = Callable[[], None]


class Doorbell:
    """The bells of one process. Safe from any thread; listeners must return at once."""

    def __init__(self) -> None:
        self._id = uuid.uuid4().hex
        self._listeners: dict[Bell, list[Listener]] = {bell: [] for bell in Bell}
        self._lock = threading.Lock()
        self._due: set[Bell] = set()
        self._wanted = threading.Event()
        self._sender: threading.Thread | None = None
        self._receiver: threading.Thread | None = None

    def on(self, bell: Bell, listener: Listener) -> Callable[[], None]:
        """Call `listener` at every ring, from here or elsewhere; returns what takes it off again."""
        with self._lock:
            self._listeners[bell].append(listener)
            if self._receiver is None:
                self._receiver = _daemon(self._receive, "doorbell-listen")
        return lambda: self._off(bell, listener)

    def _off(self, bell: Bell, listener: Listener) -> None:
        with self._lock:
            self._listeners[bell].remove(listener)

    def ring(self, bell: Bell = Bell.WORK) -> None:
        """Ring here at once, and elsewhere within a few milliseconds. Call it after the commit."""
        self._sound(bell)
        with self._lock:
            self._due.add(bell)
            if self._sender is None:
                self._sender = _daemon(self._send, "doorbell-send")
        self._wanted.set()

    def _sound(self, bell: Bell) -> None:
        with self._lock:
            listeners = list(self._listeners[bell])
        for listener in listeners:
            listener()

    def _send(self) -> None:
        """Send what is due, at once and then at most every DEBOUNCE_S, for as long as the process lives."""
        connection: psycopg.Connection[tuple[object, ...]] | None = None
        while True:
            self._wanted.wait()
            self._wanted.clear()
            with self._lock:
                due, self._due = self._due, set()
            try:
                if connection is None or connection.closed:
                    connection = _connect()
                for bell in due:
                    connection.execute("SELECT pg_notify(%s, %s)", (bell.value, self._id))
                time.sleep(DEBOUNCE_S)
            except psycopg.Error as error:
                # Polling will find what this ring announced.
                logger.debug("a doorbell was not sent: %s", error)
                connection = None
                time.sleep(RECONNECT_S)

    def _receive(self) -> None:
        """Listen for the rings of other processes, for as long as the process lives."""
        while True:
            try:
                with _connect() as connection:
                    for bell in Bell:
                        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(bell.value)))
                        self._sound(bell)
                    while True:
                        for note in connection.notifies(timeout=LISTEN_POLL_S):
                            if note.payload != self._id:
                                self._sound(Bell(note.channel))
            except psycopg.Error as error:
                logger.debug("the doorbell is deaf for now: %s", error)
                time.sleep(RECONNECT_S)


def _connect() -> psycopg.Connection[tuple[object, ...]]:
    """A connection of our own: LISTEN needs a session, which a transaction-mode pooler does not give."""
    config = conf.current()
    return psycopg.connect(
        config.direct_database_url or database_url(config),
        autocommit=True,
        application_name="cronoq doorbell",
        connect_timeout=5,
    )


def _daemon(target: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


DOORBELL: Final = Doorbell()
"""The process's doorbell."""


def ring() -> None:
    """There may be work. Call it after the commit."""
    DOORBELL.ring(Bell.WORK)


def ring_settled() -> None:
    """Attempts have ended. Call it after the commit."""
    DOORBELL.ring(Bell.SETTLED)


def on_settled(listener: Listener) -> Callable[[], None]:
    """Call `listener`, from any thread, whenever attempts have ended; returns what takes it off again."""
    return DOORBELL.on(Bell.SETTLED, listener)
