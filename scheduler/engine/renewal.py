"""Renews this process's leases from a thread and a connection of its own.

User code may hold the loop for as long as it likes; leases are renewed all the same. It must never decide that a lease
is lost because the database does not answer: that is a matter of time, which the engine watches on its loop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from django.db import DatabaseError, close_old_connections, connection

from scheduler.engine.attempt import Running, Stop
from scheduler.engine.db_thread import own_connection
from scheduler.policy.types import LeaseId, WorkerId
from scheduler.services import heartbeat

logger = logging.getLogger(__name__)

TICK_S: Final = 0.1
SEEN_EVERY_S: Final = 1.0
RETRY_S: Final = 0.3


class Holder(Protocol):
    """Whose leases are renewed. Methods are called from the renewal thread."""

    def held(self) -> list[Running]:
        """The attempts whose leases are to be kept."""

    def halt(self, lease: LeaseId, why: Stop) -> None:
        """Stop one of them, on its loop."""


class Renewal:
    """The renewal thread of one engine."""

    def __init__(self, worker: WorkerId, holder: Holder, *, register: Callable[[], None]) -> None:
        self._worker = worker
        self._holder = holder
        self._register = register
        self._ending = threading.Event()
        self._asked = threading.Event()
        self._see_at = 0.0
        self._faults = 0
        self._thread = threading.Thread(target=self._run, name="renew", daemon=True)

    def start(self) -> None:
        """Begin renewing."""
        self._thread.start()

    def hurry(self) -> None:
        """Look soon: somebody may have asked an attempt to stop."""
        self._asked.set()

    def stop(self) -> None:
        """End, after the last attempt has."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        own_connection()
        try:
            while not self._ending.is_set():
                self._ending.wait(self._step())
        finally:
            connection.close()

    def _step(self) -> float:
        """Renew when it is time to, or see who was asked to stop; returns the seconds until the next look."""
        held = self._holder.held()
        now = time.monotonic()
        try:
            if now >= self._see_at or any(running.renewal_due(now) for running in held):
                self._renew(held, now)
            elif held and self._asked.is_set():
                self._asked.clear()
                self._stop_those(heartbeat.cancelled(self._worker))
        except DatabaseError as error:
            if not self._faults:
                logger.warning("leases are not renewed; trying again: %s", error)
            self._faults += 1
            close_old_connections()
            return RETRY_S
        if self._faults:
            logger.info("leases are renewed again after %d faults", self._faults)
            self._faults = 0
        return TICK_S

    def _renew(self, held: list[Running], now: float) -> None:
        renewed = heartbeat.renew(self._worker, [running.lease for running in held])
        if not renewed.known:
            self._register()
        self._see_at = now + SEEN_EVERY_S
        lost = set(renewed.lost)
        for running in held:
            if running.lease in lost:
                self._holder.halt(running.lease, Stop.FENCED)
            else:
                # Counted from before the question: the database may have answered late.
                running.valid_until = now + running.ttl_s
        self._stop_those(renewed.told_to_stop)

    def _stop_those(self, leases: tuple[LeaseId, ...] | list[LeaseId]) -> None:
        for lease in leases:
            self._holder.halt(lease, Stop.CANCELLED)
