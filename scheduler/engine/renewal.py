"""Renews this process's leases from a thread and a connection of its own.

User code may hold the loop for as long as it likes; leases are renewed all the same. When the database cannot be
reached for as long as a lease lasts, the attempt is stopped here before it may start elsewhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from django.db import DatabaseError, close_old_connections, connection

from scheduler.engine.attempt import Running, Stop
from scheduler.policy.types import LeaseId, WorkerId
from scheduler.services import heartbeat

logger = logging.getLogger(__name__)

RENEW_FRACTION: Final = 3.0
SEEN_EVERY_S: Final = 3.0
RETRY_S: Final = 0.5
FENCE_MARGIN_S: Final = 0.2
"""An attempt is stopped this long before its lease may end, so that the stop comes first."""


class Holder(Protocol):
    """Whose leases are renewed. Methods are called from the renewal thread."""

    def held(self) -> list[Running]:
        """The attempts in flight."""

    def halt(self, lease: LeaseId, why: Stop) -> None:
        """Stop one of them, on its loop."""


class Renewal:
    """The renewal thread of one engine."""

    def __init__(self, worker: WorkerId, holder: Holder, *, register: Callable[[], None]) -> None:
        self._worker = worker
        self._holder = holder
        self._register = register
        self._ending = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="renew", daemon=True)

    def start(self) -> None:
        """Begin renewing."""
        self._thread.start()

    def hurry(self) -> None:
        """Look now: somebody may have asked an attempt to stop."""
        self._wake.set()

    def stop(self) -> None:
        """End, after the last attempt has."""
        self._ending.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                wait_s = self._round()
                self._wake.wait(wait_s)
                self._wake.clear()
        finally:
            connection.close()

    def _round(self) -> float:
        """Renew once; returns the seconds until the next round."""
        held = self._holder.held()
        asked_at = time.monotonic()
        try:
            renewed = heartbeat.renew(self._worker, [running.lease for running in held])
            if not renewed.known:
                self._register()
        except DatabaseError as error:
            logger.warning("leases were not renewed: %s", error)
            close_old_connections()
            self._fence(held)
            return RETRY_S
        lost = set(renewed.lost)
        for running in held:
            if running.lease in lost:
                self._holder.halt(running.lease, Stop.FENCED)
            else:
                running.valid_until = asked_at + running.ttl_s
        for lease in renewed.told_to_stop:
            self._holder.halt(lease, Stop.CANCELLED)
        return min([SEEN_EVERY_S, *(running.ttl_s / RENEW_FRACTION for running in held)])

    def _fence(self, held: list[Running]) -> None:
        """Stop attempts whose lease may have ended while we could not renew it."""
        now = time.monotonic()
        for running in held:
            if now > running.valid_until - FENCE_MARGIN_S:
                self._holder.halt(running.lease, Stop.FENCED)
