"""Looks ahead in a process of its own, and speaks with it over its pipes.

Looking ahead is a second of arithmetic and a hundred thousand objects. In the engine's process all threads would stand
still for parts of it: what should have started then would start late, bunched, and be refused by its provider. The
process knows no database and ends by itself when its engine does, however that ends.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO, Final, cast

from scheduler.policy.forecast import Forecast, foretell
from scheduler.policy.learned import Learned
from scheduler.policy.scene import Scene

NICENESS: Final = 10
"""Whatever runs tasks goes before what looks ahead."""
PROCESSOR_S_MAX: Final = 60.0
"""A look that takes longer is given up: whoever asked would wait for it and go by what was foretold before."""
ROOT: Final = Path(__file__).resolve().parents[2]


class Ahead:
    """The process, started when it is first needed and again when it ended. Asked by one thread at a time."""

    def __init__(self, *, processor_s_max: float = PROCESSOR_S_MAX) -> None:
        self._processor_s_max = processor_s_max
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = threading.Lock()
        self._closed = False

    def foretell(self, scene: Scene, learned: Learned) -> tuple[Forecast, float]:
        """What comes, and the seconds of processor time that it took to see. Raises LookedInVain."""
        with self._asked:
            try:
                return self._ask(scene, learned)
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self._end()
                raise LookedInVain(f"the process that looks ahead has ended: {error!r}") from error

    def _ask(self, scene: Scene, learned: Learned) -> tuple[Forecast, float]:
        process = self._running()
        question, answer = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        pickle.dump((scene, learned), question, pickle.HIGHEST_PROTOCOL)
        question.flush()
        found: tuple[Forecast, float] = pickle.load(answer)  # noqa: S301 - our own process wrote it
        return found

    def close(self) -> None:
        """End the process, also while it is asked; it is not started again. Safe from any thread."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._asked:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise EOFError("closed")
        if self._process is None:
            command = [sys.executable, "-m", __spec__.name, str(self._processor_s_max)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT)  # noqa: S603 - our own module
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


class LookedInVain(Exception):
    """Nothing was foretold; the next time may go well."""


def main(processor_s_max: float) -> None:
    """Answer scenes with forecasts until the pipe ends, or until one takes longer than that."""
    # Ctrl-C reaches all processes of a terminal; this one is for its engine to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    gc.freeze()
    chance = random.SystemRandom()
    while True:
        try:
            scene, learned = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own engine wrote it
        except EOFError:
            return
        began = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, processor_s_max)  # its signal ends the process
        forecast = foretell(scene, learned, draw=chance.random)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        pickle.dump((forecast, time.process_time() - began), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]))
