"""Joins single submissions that come at the same time into one transaction.

An idle process waits for nothing: the first caller stores its task at once. Those who come while it does so form the
next batch, stored by one of them. It must never let one submission's fault reach another, and never take work out of a
caller's own transaction.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Final

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from scheduler.errors import CronoqError
from scheduler.policy.admission import Submission
from scheduler.policy.types import TenantId
from scheduler.services import submit as service
from scheduler.services.submit import Accepted

logger = logging.getLogger(__name__)

TASKS_MAX: Final = 200
"""Submissions in one transaction."""
BYTES_MAX: Final = 4 * 2**20
"""Payload in one transaction."""


@dataclass(slots=True, eq=False)
class _Ticket:
    """One waiting caller. `woken` is set when there is an `answer`, or when it is this caller's turn to store."""

    tenant: TenantId
    submission: Submission
    woken: threading.Event = field(default_factory=threading.Event)
    answer: Accepted | BaseException | None = None


class GroupCommit:
    """The waiting submissions of one process. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._storing = False

    def submit(self, tenant: TenantId, submission: Submission) -> Accepted:
        """Store one task; returns when it is committed. Raises Refused, or the database's error.

        Inside the caller's own transaction nothing is joined: the task commits with the rest of it.
        """
        if connection.in_atomic_block:
            return service.submit(tenant, submission)
        mine = _Ticket(tenant, submission)
        with self._lock:
            self._waiting.append(mine)
            my_turn = not self._storing
            self._storing = True
        if not my_turn:
            mine.woken.wait()
        if mine.answer is None:
            self._store_batch()
        if isinstance(mine.answer, BaseException):
            raise mine.answer
        assert mine.answer is not None  # noqa: S101 - the batch that a caller stores holds its own submission
        return mine.answer

    def _store_batch(self) -> None:
        """Store what waits (the caller's own first), then hand the turn to the first who came meanwhile."""
        with self._lock:
            batch = self._take()
        try:
            _store(batch)
        finally:
            with self._lock:
                heir = self._waiting[0] if self._waiting else None
                self._storing = heir is not None
            for ticket in batch:
                ticket.woken.set()
            if heir is not None:
                heir.woken.set()

    def _take(self) -> list[_Ticket]:
        count = size = 0
        for ticket in self._waiting[:TASKS_MAX]:
            size += len(ticket.submission.payload)
            if count and size > BYTES_MAX:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch


def _store(batch: list[_Ticket]) -> None:
    """Answer every ticket."""
    try:
        answers = service.submit_each([(t.tenant, t.submission) for t in batch])
    except (OperationalError, InterfaceError) as error:
        # The database does not answer: asking again for each would only make everybody wait longer.
        for ticket in batch:
            ticket.answer = error
    except (DatabaseError, CronoqError) as error:
        if len(batch) == 1:
            batch[0].answer = error
            return
        logger.warning("a batch of %d submissions failed and is stored one by one: %s", len(batch), error)
        for ticket in batch:
            _store([ticket])
    except BaseException as error:
        for ticket in batch:
            ticket.answer = error
        raise
    else:
        for ticket, answer in zip(batch, answers, strict=True):
            ticket.answer = answer


GROUP_COMMIT: Final = GroupCommit()
"""The process's one group."""
