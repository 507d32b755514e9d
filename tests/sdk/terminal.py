"""A program on a terminal of its own, as a person has it: what it asks is answered by keys, and Ctrl-C reaches it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

CTRL_C: Final = "\x03"
# Opening a terminal makes it that of the session, which is what Ctrl-C goes by.
START: Final = "import os, runpy; os.open(os.ttyname(0), os.O_RDWR); runpy.run_module({!r}, run_name='__main__')"


class Terminal:
    """What is seen of the program, and the keys."""

    def __init__(self, screen: int, program: subprocess.Popen[bytes]) -> None:
        self._screen = screen
        self._program = program
        self.text = ""
        self._read_to = 0

    def wait_for(self, words: str, *, timeout_s: float = 60.0) -> None:
        """Wait until this is to be read after what was last waited for. Raises TimeoutError."""
        give_up_at = time.monotonic() + timeout_s
        while (found := self.text.find(words, self._read_to)) < 0:
            ready, _, _ = select.select([self._screen], [], [], max(0.0, give_up_at - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{words!r} is not to be read in {self.text!r}")
            self.text += os.read(self._screen, 65_536).decode()
        self._read_to = found + len(words)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._screen, keys.encode())

    def status(self) -> int:
        """The exit status, once the program has ended."""
        with suppress(OSError):
            # Read to the end, which a terminal tells by a fault: what is not read may hold the program up.
            while data := os.read(self._screen, 65_536):
                self.text += data.decode()
        return self._program.wait(30)


@contextmanager
def on_terminal(module: str, *words: str, environ: Mapping[str, str]) -> Iterator[Terminal]:
    """A module's program on a terminal, ended with the block."""
    screen, line = pty.openpty()
    command = [sys.executable, "-c", START.format(module), *words]
    program = subprocess.Popen(command, stdin=line, stdout=line, stderr=line, env=environ, start_new_session=True)
    os.close(line)
    try:
        yield Terminal(screen, program)
    finally:
        program.kill()
        program.wait()
        os.close(screen)
