"""Brings the reports of ended attempts to the database, in batches and for as long as it takes.

A lease is kept until its report is in. A report that the database cannot take is told as a failure of its attempt; it
must never hold up the reports of others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError

from scheduler.engine.attempt import Running
from scheduler.engine.db_thread import DbThread
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome
from scheduler.services.settle import Report, Settled, settle

logger = logging.getLogger(__name__)

PASSING: Final = (OperationalError, InterfaceError, InternalError)
"""Faults of the database's condition rather than of what it was told: the same reports may work later."""


class Outbox:
    """Reports on their way. To be used on the engine's loop, except `held`."""

    def __init__(self, db: DbThread, *, batch_max: int) -> None:
        self._db = db
        self._batch_max = batch_max
        self._reports: deque[Report] = deque()
        self._ended: dict[LeaseId, Running] = {}
        self._wanted = asyncio.Event()

    def add(self, report: Report, attempt: Running | None = None) -> None:
        """Send this. The lease of its attempt is kept meanwhile."""
        if attempt is not None:
            self._ended[report.lease] = attempt
        self._reports.append(report)
        self._wanted.set()

    def hurry(self) -> None:
        """Let a waiting `next` look."""
        self._wanted.set()

    @property
    def waiting(self) -> int:
        """How many reports are not in yet."""
        return len(self._reports)

    def held(self) -> list[Running]:
        """Attempts that have ended and are not reported yet; safe from any thread."""
        return list(self._ended.values())

    async def wait(self) -> None:
        """Return when there is something to send, or `hurry` was called."""
        if not self._reports:
            await self._wanted.wait()
        self._wanted.clear()

    async def send_batch(self) -> Settled:
        """Send the next batch. It stays first in line when this raises: a repeated report does no harm."""
        batch = [self._reports[n] for n in range(min(len(self._reports), self._batch_max))]
        settled = await self._db.call(settle_apart, batch)
        for report in batch:
            self._reports.popleft()
            self._ended.pop(report.lease, None)
        if settled.stale:
            logger.info("%d reports came too late: their leases had ended", len(settled.stale))
        return settled


def settle_apart(reports: Sequence[Report]) -> Settled:
    """Settle these together, or one by one when one of them cannot be taken. Raises only faults that pass."""
    try:
        return settle(reports)
    except PASSING:
        raise
    except (DatabaseError, ValueError, LookupError, ArithmeticError, TypeError) as error:
        if len(reports) == 1:
            return _settle_as_failed(reports[0], error)
    each = [settle_apart([report]) for report in reports]
    return Settled(
        {lease: state for settled in each for lease, state in settled.states.items()},
        tuple(lease for settled in each for lease in settled.stale),
        sum(settled.woken for settled in each),
    )


def _settle_as_failed(report: Report, error: Exception) -> Settled:
    """The same attempt would come to the same: the task fails for good, and says why."""
    logger.error("the report of lease %s cannot be stored: %s", report.lease, error)
    failure = Failure(FailureClass.PERMANENT, f"What the attempt came to cannot be stored: {type(error).__name__}.")
    try:
        return settle([Report(report.lease, Outcome.FAILED, failure)])
    except PASSING:
        raise
    except (DatabaseError, ValueError, LookupError, ArithmeticError, TypeError):
        logger.exception("lease %s cannot be settled at all; it is left to expire", report.lease)
        return Settled({}, ())
