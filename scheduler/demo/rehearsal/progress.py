"""Tells a person who waits how far a rehearsal is: one line, rewritten on a terminal, now and then elsewhere."""

from __future__ import annotations

import time
from typing import Final, TextIO

ELSEWHERE_EVERY_S: Final = 10.0


class Progress:
    """Writes to a stream; silent when it is None."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began_s = time.monotonic()
        self._said_s = float("-inf")
        self._width = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began_s

    def step(self, text: str) -> None:
        """Something new began: always told, on a line of its own."""
        self.done()
        self._write(self._line(text) + "\n")

    def now(self, text: str) -> None:
        """How it stands now: replaces what was said before on a terminal, told every ten seconds elsewhere."""
        if self._stream is None:
            return
        if self._stream.isatty():
            line = self._line(text)
            self._write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif time.monotonic() - self._said_s >= ELSEWHERE_EVERY_S:
            self._said_s = time.monotonic()
            self._write(self._line(text) + "\n")

    def done(self) -> None:
        """Leave the rewritten line as it is."""
        if self._width:
            self._write("\n")
            self._width = 0

    def _line(self, text: str) -> str:
        return f"{self.elapsed_s:6.1f} s  {text}"

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
