"""Handlers that write down their own runs, in a file that outlives every process: one line when one begins and ends."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

RUNS = "ACCEPTANCE_RUNS"


@dataclass(frozen=True, slots=True)
class Run:
    """One line: `what` is `began` or `ended`."""

    what: str
    lease: int
    task: int
    attempt: int
    pid: int


def runs(path: Path) -> list[Run]:
    """What was written down so far."""
    if not path.exists():
        return []
    return list(_parsed(path.read_text(encoding="ascii").splitlines()))


def _parsed(lines: list[str]) -> Iterator[Run]:
    for line in lines:
        what, *numbers = line.split()
        yield Run(what, *map(int, numbers))


def _write(what: str, ctx: Any) -> None:
    """Append one line at once, whoever else does."""
    line = f"{what} {ctx.lease_id} {ctx.task_id} {ctx.attempt} {os.getpid()}\n"
    descriptor = os.open(os.environ[RUNS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode("ascii"))
    finally:
        os.close(descriptor)


async def short(ctx: Any, payload: Any) -> int:
    """Take between 0.05 and 0.4 s; answer with the lease."""
    _write("began", ctx)
    await asyncio.sleep(random.Random(payload).uniform(0.05, 0.4))
    _write("ended", ctx)
    return int(ctx.lease_id)


def first_waits(ctx: Any, payload: str) -> str:
    """The first attempt waits for a file and does not care whether it is told to stop; a second answers at once."""
    _write("began", ctx)
    if ctx.attempt == 1:
        wait_until(Path(payload).exists, what="the test to go on")
    _write("ended", ctx)
    return f"attempt {ctx.attempt}"


async def endless(ctx: Any, _payload: Any) -> None:
    """Never end by itself."""
    _write("began", ctx)
    await asyncio.Event().wait()
