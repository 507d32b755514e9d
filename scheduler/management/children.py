"""Child processes of ``serve``: started, watched, started again when they fall over, and never left behind.

Decides when a child that ended is started again and how its end is forced. A child dies with its parent even when the
parent is killed: on Linux the kernel is asked to signal it, elsewhere it notices that its parent changed.
It must never know what the children do.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
RESTART_DELAY_FIRST_S = 0.5
RESTART_DELAY_MAX_S = 30.0
# A child that ran this long is taken to be well; its next restart is quick again.
STEADY_AFTER_S = 60.0
STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Child:
    """One program to keep running: a short name for the log, and the words after the Python interpreter."""

    name: str
    arguments: tuple[str, ...]


def die_with_parent(signal_number: int = signal.SIGTERM) -> None:
    """Have this process receive ``signal_number`` when the process that started it ends, however it ends."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    else:
        threading.Thread(target=_watch_parent, args=(parent, signal_number), daemon=True).start()
    if os.getppid() != parent:
        # It ended before we asked to be told.
        os.kill(os.getpid(), signal_number)


def _watch_parent(parent: int, signal_number: int) -> None:
    """Poll for the parent where the kernel offers no notice."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal_number)


class Children:
    """Keeps a set of programs running until stopped. Each has one thread that waits for it."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []

    def start(self, child: Child) -> None:
        """Start one program and keep it running."""
        thread = threading.Thread(target=self._keep, args=(child,), name=f"child-{child.name}")
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End every program: asked first, killed after ``STOP_TIMEOUT_S``. Returns when all are gone."""
        with self._lock:
            self._stopping.set()
            for process in self._processes.values():
                process.terminate()
        give_up_at = time.monotonic() + STOP_TIMEOUT_S
        for thread in self._threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))
        self.kill()
        for thread in self._threads:
            thread.join()

    def kill(self) -> None:
        """End every program at once."""
        with self._lock:
            self._stopping.set()
            for process in self._processes.values():
                process.kill()

    def _keep(self, child: Child) -> None:
        """Run the program again each time it ends, with growing pauses while it keeps falling over."""
        delay_s = RESTART_DELAY_FIRST_S
        while True:
            began = time.monotonic()
            with self._lock:
                if self._stopping.is_set():
                    return
                process = _spawn(child.arguments)
                self._processes[child.name] = process
            status = process.wait()
            if time.monotonic() - began > STEADY_AFTER_S:
                delay_s = RESTART_DELAY_FIRST_S
            if self._stopping.is_set():
                return
            logger.warning("%s ended with status %s; starting it again in %.1f s", child.name, status, delay_s)
            if self._stopping.wait(delay_s):
                return
            delay_s = min(delay_s * 2, RESTART_DELAY_MAX_S)


def _spawn(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start one Python program in a process group of its own, so that Ctrl-C reaches it through us and in order."""
    launcher = (sys.executable, "-m", "scheduler.management.launch", str(os.getpid()))
    return subprocess.Popen(  # noqa: S603  # our own programs, no shell
        [*launcher, *arguments], stdin=subprocess.DEVNULL, start_new_session=True
    )
