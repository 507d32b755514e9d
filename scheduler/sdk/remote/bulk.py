"""What is asked of a server about many tasks at once: lists, and operations on all that match a filter. No I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from scheduler.sdk.remote.answers import Operation, Preview, TaskPage
from scheduler.sdk.remote.calls import Call

PAGE_TASKS: Final = 100


def page_rows(left: int | None) -> int:
    """How many tasks to ask for at once, where so many are wanted yet (None: all)."""
    return PAGE_TASKS if left is None else min(left, PAGE_TASKS)


def tasks(wanted: str, *, cursor: str | None, rows_max: int) -> Call[TaskPage]:
    """A page of the tasks that match, newest first."""
    named = {"filter": wanted or None, "cursor": cursor, "limit": str(rows_max)}
    return Call(
        "GET", "/tasks", TaskPage.of, params={name: value for name, value in named.items() if value is not None}
    )


def preview(kind: str, wanted: str) -> Call[Preview]:
    """What an operation would be done to."""
    return Call("POST", "/operations/preview", Preview.of, {"kind": kind, "filter": wanted})


def start(
    kind: str, wanted: str, *, reason: str, rate: float | None, as_of: datetime | str | None, shown: int | None
) -> Call[Operation]:
    """Do something to all tasks that match."""
    moment = as_of.isoformat() if isinstance(as_of, datetime) else as_of
    optional = {"rate": rate, "as_of": moment, "shown": shown}
    body = {"kind": kind, "filter": wanted, "reason": reason}
    return Call("POST", "/operations", Operation.of, body | {n: v for n, v in optional.items() if v is not None})


def operation(number: int) -> Call[Operation]:
    """How far an operation is."""
    return Call("GET", f"/operations/{number}", Operation.of)


def change(number: int, word: str, reason: str) -> Call[Operation]:
    """Pause, resume or abort an operation."""
    return Call("POST", f"/operations/{number}/{word}", Operation.of, {"reason": reason})
