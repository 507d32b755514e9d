"""How tasks ended, for those who wait for many of them at the price of one query."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.policy.types import TaskId
from scheduler.store.ends import EndRow, load_ends

__all__ = ["EndRow", "ends_of"]


def ends_of(tasks: Sequence[TaskId]) -> list[EndRow]:
    """Those of these tasks that have ended or are not kept any more; the others are missing from the answer."""
    return load_ends(tasks)
