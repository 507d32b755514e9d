"""Joins single submissions that come at the same time into one transaction.

An idle process waits for nothing: the first submission is stored at once. Those that come meanwhile form the next
batch. It must never let one submission's fault reach another, and never take work out of a caller's own transaction.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from scheduler.engine.db_thread import close_connection, own_connection
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
TRUSTED_S: Final = 1.0
"""A connection that was idle for longer is tried before it is used: a failed commit could not be repeated safely."""


@dataclass(slots=True, eq=False)
class _Ticket:
    """One submission and its answer to be."""

    tenant: TenantId
    submission: Submission
    answer: Future[Accepted] = field(default_factory=Future)


class GroupCommit:
    """The waiting submissions of one process, and the thread that stores them. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._storing = False
        self._stored_at = 0.0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="group-commit", initializer=own_connection)

    def join(self, tenant: TenantId, submission: Submission) -> Future[Accepted]:
        """Store one task with others; the future holds what became of it once that is committed.

        It raises Refused, or the database's error.
        """
        ticket = _Ticket(tenant, submission)
        with self._lock:
            self._waiting.append(ticket)
            if not self._storing:
                self._storing = True
                self._thread.submit(self._store_all)
        return ticket.answer

    def submit(self, tenant: TenantId, submission: Submission) -> Accepted:
        """Store one task and wait until it is committed. Raises Refused, or the database's error.

        Inside the caller's own transaction nothing is joined: the task commits with the rest of it.
        """
        if connection.in_atomic_block:
            return service.submit(tenant, submission)
        return self.join(tenant, submission).result()

    def let_go(self) -> None:
        """Give the connection back; the next submission connects anew. Waits for what is being stored."""
        self._thread.submit(close_connection).result()

    def close(self) -> None:
        """Store what waits, then give thread and connection back."""
        self._thread.submit(close_connection)
        self._thread.shutdown(wait=True)

    def _store_all(self) -> None:
        """Store batch after batch until nobody waits."""
        if time.monotonic() - self._stored_at > TRUSTED_S:
            _drop_dead_connection()
        while batch := self._take():
            _store(batch)
        self._stored_at = time.monotonic()

    def _take(self) -> list[_Ticket]:
        """What goes into the next transaction. Empty: this thread is done, and the next to come begins anew."""
        with self._lock:
            count = size = 0
            for ticket in self._waiting[:TASKS_MAX]:
                size += len(ticket.submission.payload)
                if count and size > BYTES_MAX:
                    break
                count += 1
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            self._storing = bool(batch)
            return batch


def _drop_dead_connection() -> None:
    """Have the next statement connect anew if the server was restarted while nobody submitted."""
    if connection.connection is not None and not connection.is_usable():
        connection.close()


def _store(batch: list[_Ticket]) -> None:
    """Answer every ticket, whatever happens."""
    try:
        answers = service.submit_each([(t.tenant, t.submission) for t in batch])
    except (OperationalError, InterfaceError) as error:
        # The database does not answer: asking again for each would only make everybody wait longer.
        connection.close()
        _fail(batch, error)
    except (DatabaseError, CronoqError) as error:
        if len(batch) == 1:
            _fail(batch, error)
            return
        logger.warning("a batch of %d submissions failed and is stored one by one: %s", len(batch), error)
        for ticket in batch:
            _store([ticket])
    except Exception as error:
        logger.exception("a batch of %d submissions failed", len(batch))
        _fail(batch, error)
    else:
        for ticket, answer in zip(batch, answers, strict=True):
            _answer(ticket, answer)


def _fail(batch: list[_Ticket], error: Exception) -> None:
    for ticket in batch:
        _answer(ticket, error)


def _answer(ticket: _Ticket, answer: Accepted | Exception) -> None:
    """Tell the caller, unless it has gone."""
    if not ticket.answer.set_running_or_notify_cancel():
        return
    if isinstance(answer, Exception):
        ticket.answer.set_exception(answer)
    else:
        ticket.answer.set_result(answer)


GROUP_COMMIT: Final = GroupCommit()
"""The process's one group."""
