"""Starts this installation's programs for a measurement and ends them with it. Knows nothing of what they do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress


@contextmanager
def running(
    command: list[str], environment: Mapping[str, str] | None = None, *, pass_fds: tuple[int, ...] = ()
) -> Iterator[int]:
    """A process of this installation, until the block ends; its id. Without an environment it has ours."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, pass_fds=pass_fds, stdout=quiet, stderr=quiet)  # noqa: S603 - this very installation's commands
    try:
        yield process.pid
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()
