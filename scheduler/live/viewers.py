"""What the hub knows of a socket: the page it watches, the frame it shows, and the line that takes messages to it.

A message is made once for all who get the same, also in the form that it has on the wire. Nothing here may wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from scheduler.live.frames import Frame, Key, beat

_SHORT_MAX: Final = 125
_MEDIUM_MAX: Final = 0xFFFF


class Message:
    """A text for any number of sockets."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def wire(self) -> bytes:
        """The same as one whole websocket frame from a server (RFC 6455, section 5.2): final, text, not masked."""
        data = self.text.encode()
        if len(data) <= _SHORT_MAX:
            return bytes((0x81, len(data))) + data
        if len(data) <= _MEDIUM_MAX:
            return b"\x81\x7e" + len(data).to_bytes(2, "big") + data
        return b"\x81\x7f" + len(data).to_bytes(8, "big") + data


class Line(Protocol):
    """The way to one socket."""

    def write(self, message: Message) -> bool:
        """Begin to send; false, with nothing sent, while something earlier is still on its way."""


@dataclass(eq=False, slots=True)
class Viewer:
    """One socket. `shown` is what its page shows once it was sent something; `end` closes a line that takes no more."""

    key: Key
    line: Line
    end: Callable[[], None]
    shown: Frame | None = None
    told_at_s: float = 0.0
    busy_since_s: float | None = None


class Messages:
    """What is said at one moment: `age_s` is the age of the newest snapshot, `lost` as in `frames.beat`."""

    def __init__(self, age_s: float, *, lost: bool = False) -> None:
        self._age_s, self._lost = age_s, lost
        self._changes: dict[tuple[Key, int, int], Message | None] = {}
        self._beats: dict[tuple[Key, int], Message] = {}

    def change(self, shown: Frame, newest: Frame) -> Message | None:
        """What moves a page from one frame to another; nothing where nothing visible changed."""
        if newest is shown:
            return None
        key = shown.key, shown.seq, newest.seq
        if key not in self._changes:
            changed = newest.since(shown)
            self._changes[key] = Message(self._opening(newest) + changed) if changed else None
        return self._changes[key]

    def beat(self, frame: Frame) -> Message:
        """That the page is what it was."""
        key = frame.key, frame.seq
        if key not in self._beats:
            self._beats[key] = Message(self._opening(frame))
        return self._beats[key]

    def _opening(self, frame: Frame) -> str:
        return beat(frame, self._age_s, lost=self._lost)
