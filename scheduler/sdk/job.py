"""One attempt of a remote worker, as `TaskContext` shows it to its handler, and its way back to the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from scheduler.protocol.messages import Lease

T = TypeVar("T")
Write = Callable[..., Awaitable[Mapping[str, Any]]]
"""Writes under a lease: `await write(lease, kind, **fields)`. Raises WriteRefused."""


class Job:
    """One attempt. What it writes is written under its lease, and is refused once that has ended."""

    def __init__(self, lease: Lease, write: Write, loop: asyncio.AbstractEventLoop) -> None:
        said = lease.body
        self.lease_id: int = lease.lease
        self.task_id: int = said["task"]
        self.attempt: int = said["attempt"]
        self.kind: str = said["kind"]
        self.key: str | None = said.get("key")
        self.pool: str = said["pool"]
        self.tenant: str = said["tenant"]
        self.timeout_s: float | None = said.get("timeout_s")
        self.deadline: float | None = said.get("deadline_at")
        self.degraded: bool = said.get("degraded", False)
        self.max_output_tokens: int | None = said.get("max_output_tokens")
        self.trace: str | None = said.get("trace")
        self.tags: Mapping[str, str] = said.get("tags") or {}
        self.payload: Any = said.get("payload")
        self.upstream: dict[str, Any] = said.get("upstream") or {}
        self.run: int | None = said.get("run")
        self.checkpoint: Any = said.get("checkpoint")
        self._write = write
        self._loop = loop
        self._stopped = threading.Event()

    @property
    def missing(self) -> tuple[str, ...]:
        """The names in `upstream` that have no success to show."""
        return tuple(name for name, parent in self.upstream.items() if parent["state"] != "succeeded")

    def is_cancelled(self) -> bool:
        """Whether the attempt was told to stop, whatever for."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Tell it to."""
        self._stopped.set()

    # For the run that it is a step of, and for its bill

    async def save_checkpoint(self, value: Any) -> int:
        """Write where the run can be taken up; the new version."""
        answer = await self._write(self.lease_id, "checkpoint", checkpoint=value)
        self.checkpoint = value
        return int(answer["version"])

    def receipt(self, step: str) -> JobReceipt:
        """An effect of the run."""
        return JobReceipt(step, self.lease_id, self._write)

    async def charge(self, usage: Mapping[str, Any], call: str) -> bool:
        """Charge a call; False when one of that name was charged before."""
        answer = await self._write(self.lease_id, "charge", call=call, usage=dict(usage))
        return bool(answer["added"])

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        """For a plain function, in a thread: let it be done, and return what comes of it."""
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result()


class JobReceipt:
    """An effect of the run on the world outside. See `scheduler.sdk.context.Receipt`."""

    def __init__(self, step: str, lease: int, write: Write) -> None:
        self.step = step
        self.key = ""
        self.value: Any = None
        self.is_done = False
        self._lease = lease
        self._write = write

    async def claim(self, fingerprint: str) -> str:
        """Ask to make it."""
        answer = await self._write(self._lease, "claim", step=self.step, fingerprint=fingerprint)
        self.key, self.value = answer["idempotency_key"], answer.get("receipt")
        self.is_done = answer["status"] == "done"
        return str(answer["status"])

    async def commit(self, receipt: Any) -> Any:
        """Put down what came of it; the receipt that stands."""
        answer = await self._write(self._lease, "commit", step=self.step, receipt=receipt)
        self.value, self.is_done = answer.get("receipt"), True
        return self.value

    async def abandon(self) -> None:
        """Give the claim up."""
        await self._write(self._lease, "abandon", step=self.step)
        self.is_done = False
