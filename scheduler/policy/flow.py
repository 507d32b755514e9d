"""Decides how much may be sent to a listener that has not said that it got what was sent before.

A web server takes all that it is given and keeps what the other side does not read: so what is on its way is counted
here. What a listener acknowledges has arrived. Without a word, what was sent is taken to arrive at a slow pace, which
bounds what a dead connection can pile up until the server notices. Who neither acknowledges nor keeps up is given up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

WINDOW_BYTES: Final = 262_144
PACE_BYTES_PER_S: Final = 65_536.0
BEHIND_MAX_S: Final = 60.0


@dataclass(slots=True)
class Flow:
    """What is on its way to one listener. Times are seconds of one clock, whichever."""

    since: float
    bytes_on_way: int = 0
    _credit: float = 0.0
    _sent: deque[tuple[int, int]] = field(default_factory=deque)
    _full_since: float | None = None

    def sent(self, seq: int, size: int, *, now: float) -> None:
        """An event of this place and size was sent."""
        self._pass_time(now)
        self._sent.append((seq, size))
        self.bytes_on_way += size

    def acknowledged(self, seq: int, *, now: float) -> None:
        """Everything up to this place arrived."""
        self._pass_time(now)
        self._full_since = None
        while self._sent and self._sent[0][0] <= seq:
            self._arrived()

    def caught_up(self) -> None:
        """Nothing more is waiting to be sent."""
        self._full_since = None

    def room(self, *, now: float) -> bool:
        """Whether more may be sent."""
        self._pass_time(now)
        if self.bytes_on_way < WINDOW_BYTES:
            return True
        if self._full_since is None:
            self._full_since = now
        return False

    def is_given_up(self, *, now: float) -> bool:
        """Whether it is too long ago that it acknowledged something or had caught up, and there was no room since."""
        return self._full_since is not None and now - self._full_since > BEHIND_MAX_S

    def _pass_time(self, now: float) -> None:
        self._credit += PACE_BYTES_PER_S * max(0.0, now - self.since)
        self.since = now
        while self._sent and self._credit >= self._sent[0][1]:
            self._credit -= self._arrived()
        if not self._sent:
            self._credit = 0.0

    def _arrived(self) -> int:
        _, size = self._sent.popleft()
        self.bytes_on_way -= size
        return size
