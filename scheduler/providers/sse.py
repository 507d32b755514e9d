"""Server-sent events out of bytes, in whatever pieces they arrive.

Decides where an event ends and what its data is (WHATWG HTML, "event stream interpretation"). It must never read a
socket, and never hand out an event whose closing blank line has not come.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event; `name` is `message` unless the stream named it."""

    name: str
    data: str


@dataclass(slots=True)
class EventDecoder:
    """Feeds on bytes, yields whole events. Bounds are the caller's: it knows how much it is willing to read."""

    _utf8: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    _rest: str = ""
    _after_cr: bool = False
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """The events that this piece completes, in order."""
        fresh = self._utf8.decode(piece)
        if self._after_cr and fresh:
            # A line may end in CR LF with the piece cut between them; the LF then ends no second line.
            fresh, self._after_cr = fresh.removeprefix("\n"), False
        if fresh.endswith("\r"):
            self._after_cr = True
        fresh = fresh.replace("\r\n", "\n").replace("\r", "\n")
        *lines, self._rest = (self._rest + fresh).split("\n") if "\n" in fresh else [self._rest + fresh]
        return [event for event in map(self._take, lines) if event is not None]

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            event = ServerSentEvent(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        return None
