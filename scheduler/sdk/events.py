"""What happens to tasks, told one after the other to readers that may be slow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

from scheduler.sdk.errors import EventsLagged

OnLag = Literal["skip", "raise"]


@dataclass(frozen=True, slots=True)
class Event:
    """A task is in another state.

    `attempt` counts from 1, 0 before the first; `at` is when it was seen, in Unix seconds.
    """

    task: int
    status: str
    attempt: int
    pool: str
    kind: str
    key: str | None
    at: float


class EventStream:
    """The events from now on: `async for event in scheduler.events(): …`.

    A reader that is more than `capacity` behind loses the oldest; with `on_lag="raise"` it is told how many.
    """

    def __init__(self, capacity: int, on_lag: OnLag, leave: Callable[[EventStream], None]) -> None:
        self._waiting: deque[Event] = deque()
        self._capacity = max(1, capacity)
        self._raises = on_lag == "raise"
        self._leave = leave
        self._missed = 0
        self._ended = False
        self._rung = asyncio.Event()

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> Event:
        """The next event. Raises EventsLagged once for each gap, if asked to."""
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._rung.clear()
            await self._rung.wait()
        if self._missed and self._raises:
            missed, self._missed = self._missed, 0
            raise EventsLagged(missed)
        return self._waiting.popleft()

    async def aclose(self) -> None:
        """Read no more."""
        self.end()

    def put(self, event: Event) -> None:
        """One more, at the price of the oldest when there is no room."""
        if len(self._waiting) >= self._capacity:
            self._waiting.popleft()
            self._missed += 1
        self._waiting.append(event)
        self._rung.set()

    def end(self) -> None:
        """Nothing follows what is there."""
        if not self._ended:
            self._ended = True
            self._leave(self)
            self._rung.set()
