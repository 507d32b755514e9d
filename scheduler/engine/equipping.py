"""Gives attempts what they need besides their payload, or gives them back when it cannot be read.

It must never let an attempt begin without what it came for.
"""

from __future__ import annotations

import logging
from typing import Final

from django.db import DatabaseError

from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeasedTask, Outcome
from scheduler.reads.runs import with_runs
from scheduler.reads.upstream import with_upstream
from scheduler.services.settle import Report

logger = logging.getLogger(__name__)

UNREAD_RETRY_S: Final = 1.0
"""When an attempt is made again that needs what could not be read."""


def equipped(leased: list[LeasedTask]) -> list[LeasedTask]:
    """With what they need of others: what became of the tasks they came after, and their runs.

    Where that cannot be read, without those: handed back.
    """
    try:
        return with_runs(with_upstream(leased))
    except DatabaseError as error:
        logger.warning("attempts are handed back, what they need cannot be read: %s", error)
        return [task for task in leased if not task.has_parents and not task.of_run]


def handed_back(task: LeasedTask) -> Report:
    """The report of an attempt that was not begun. What needs something that cannot be read waits a moment first."""
    if not task.has_parents and not task.of_run:
        return Report(task.lease, Outcome.RELEASED)
    why = Failure(FailureClass.ERROR, "what it needs could not be read", UNREAD_RETRY_S)
    return Report(task.lease, Outcome.RELEASED, why)
