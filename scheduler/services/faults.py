"""Keeps what a Python function raised in an attempt, for those who ask for more than a line of message."""

from __future__ import annotations

from traceback import format_exception
from typing import Final

from scheduler.policy.types import LeaseId, TaskId
from scheduler.store import faults as store

TRACEBACK_CHARS_MAX: Final = 16_000
EXCEPTION_CHARS_MAX: Final = 300


def keep_fault(lease: int, task: int, error: BaseException) -> None:
    """Write down the exception of this attempt; of a long traceback the end, where it was raised."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"[:EXCEPTION_CHARS_MAX]
    text = "".join(format_exception(error)).replace("\x00", "").encode("utf-8", "replace").decode()
    store.add(LeaseId(lease), TaskId(task), store.Fault(name, text[-TRACEBACK_CHARS_MAX:]))
