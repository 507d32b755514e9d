"""A task that was submitted, to be awaited, asked and cancelled."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

from scheduler.sdk.errors import TaskFailed

SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class End:
    """How a task ended. `value` is its decoded result."""

    status: str
    value: Any = None
    message: str = ""


class Ends(Protocol):
    """Whoever knows how tasks end."""

    async def end_of(self, task: int) -> End:
        """How the task ends, once it has."""

    def known_end(self, task: int) -> End | None:
        """How it ended as far as this process knows; asking makes it look."""

    async def cancel(self, task: int) -> bool:
        """Cancel it; False when it had ended."""


class TaskHandle:
    """A submitted task. `await handle` gives its result, or raises TaskFailed.

    It may be awaited any number of times, by anyone on the scheduler's loop. Dropping it stops nothing.
    """

    __slots__ = ("_end", "_ends", "duplicate", "id", "key")

    def __init__(self, task: int, ends: Ends, *, key: str | None = None, duplicate: bool = False) -> None:
        self.id = task
        self.key = key
        self.duplicate = duplicate
        """Whether its key was used before: this is that task."""
        self._ends = ends
        self._end: End | None = None

    def __repr__(self) -> str:
        """Which task, and how it ended as far as that is known."""
        ended = "" if self._end is None else f" {self._end.status}"
        return f"<TaskHandle {self.id}{ended}>"

    def __await__(self) -> Generator[Any, None, Any]:
        """The result."""
        return self.result().__await__()

    async def result(self) -> Any:
        """What the executor returned, once it has. Raises TaskFailed when the task ended in another way."""
        if self._end is None:
            self._end = await self._ends.end_of(self.id)
        if self._end.status != SUCCEEDED:
            raise TaskFailed(self._end.status, self._end.message, task=self.id)
        return self._end.value

    def done(self) -> bool:
        """Whether it has ended, as far as this process knows by now; it looks from the first time it is asked."""
        if self._end is None:
            self._end = self._ends.known_end(self.id)
        return self._end is not None

    async def cancel(self) -> bool:
        """Cancel it: at once while it waits, by telling the attempt to stop while it runs. False when it had ended."""
        return await self._ends.cancel(self.id)
