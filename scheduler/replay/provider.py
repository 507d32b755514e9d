"""The provider of a live replay: the simulator as a child process, or one that is named.

Decides what a request says, so that the answer takes as long and costs as many tokens as the trace has it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import orjson

from scheduler.replay.faults import ReplayRefused
from scheduler.replay.world import Work

OUTPUT_MAX: Final = 4096
RUNS_MIN_S: Final = 0.000001
FILLING: Final = "word "
FILLING_MAX: Final = 45_000
"""Tokens of filling, so that a payload stays within its bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Where calls go. The simulator is told how long each answer takes; another provider takes what it takes."""

    base_url: str
    model: str
    api_key_env: str | None = None
    simulated: bool = False

    def payload(self, work: Work, *, speed: float) -> str:
        """The JSON of a call like the request in the trace."""
        request = work.request
        out = min(OUTPUT_MAX, max(1, request.output_tokens))
        if self.simulated:
            runs_s = max(RUNS_MIN_S, work.runs_s / speed)
            content = f"[takes {runs_s:.6f} s, {max(1, request.input_tokens)} tokens in, {out} out]"
        else:
            content = FILLING * max(1, min(FILLING_MAX, request.input_tokens))
        body = {"model": self.model, "messages": [{"role": "user", "content": content}], "max_tokens": out}
        return orjson.dumps(body).decode()


@asynccontextmanager
async def simulator() -> AsyncIterator[Provider]:
    """A simulated provider without limits of its own, until the block ends; it ends with this process too."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "scheduler.demo.provider_sim", "--scripted", "--exit-on-stdin-eof"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None  # noqa: S101 - asked for
    assert child.stdout is not None  # noqa: S101 - asked for
    try:
        words = (await child.stdout.readline()).decode().split()
        if not words:
            raise ReplayRefused("The provider simulator did not start.", [])
        yield Provider(base_url=f"{words[-1]}/v1", model="sim-small", simulated=True)
    finally:
        child.stdin.close()
        await child.wait()
