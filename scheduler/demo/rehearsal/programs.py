"""The processes of a rehearsal: started, killed without warning, and gone at the end.

Decides how a program is started and ended. It must never leave one behind: each dies with this process, however that
ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

STOP_TIMEOUT_S: Final = 10.0
TAIL_BYTES: Final = 4_000


class Program:
    """One Python program, output in a file."""

    def __init__(
        self, name: str, arguments: Sequence[str], environ: Mapping[str, str], log: Path, fds: Sequence[int] = ()
    ) -> None:
        """Start it. `fds` are open files that it inherits."""
        self.name = name
        self._log = log
        launcher = (sys.executable, "-m", "scheduler.management.launch", str(os.getpid()))
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs, no shell
                [*launcher, *arguments],
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(fds),
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a crash would; returns when it is gone."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and end it when it does not."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self) -> str:
        """What it said last."""
        with self._log.open("rb") as output:
            output.seek(max(0, self._log.stat().st_size - TAIL_BYTES))
            return output.read().decode(errors="replace")
