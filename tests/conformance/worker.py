"""The reference worker with the handler that the conformance cases ask for.

python -m tests.conformance.worker websocket|poll URL TOKEN POOL SLOTS [NAME=VALUE ...]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Any, cast

from scheduler.sdk.context import TaskContext
from scheduler.sdk.errors import CancelTask, Permanent, Reject, Retryable, WriteRefused
from scheduler.sdk.line import Transport
from scheduler.sdk.worker import Worker

REFUSED_ONCE: set[int] = set()


class TwiceWorker(Worker):
    """Reports twice what is to be reported twice."""

    def _report_with_others(self, kind: str, lease: int, **fields: Any) -> None:
        super()._report_with_others(kind, lease, **fields)
        if lease in TWICE:
            super()._report_with_others(kind, lease, **fields)


TWICE: set[int] = set()


async def handle(ctx: TaskContext, payload: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 - one case after the other
    """What a task asks for."""
    match payload:
        case {"do": "echo", "value": value}:
            return value
        case {"do": "seen"}:
            seen = {name: getattr(ctx, name) for name in ("attempt", "kind", "key", "pool", "tenant", "degraded")}
            return {**seen, "task": ctx.id, "tags": dict(ctx.tags)}
        case {"do": "upstream"}:
            return ctx.upstream
        case {"do": "flaky", "times": times}:
            if ctx.attempt <= times:
                raise RuntimeError("not yet")
            return ctx.attempt
        case {"do": "retry_after", "seconds": seconds}:
            if ctx.attempt == 1:
                raise Retryable("later", retry_after=seconds)
            return ctx.attempt
        case {"do": "permanent"}:
            raise Permanent("no use")
        case {"do": "cancel"}:
            raise CancelTask("not wanted any more")
        case {"do": "reject"}:
            if ctx.id not in REFUSED_ONCE:
                REFUSED_ONCE.add(ctx.id)
                raise Reject("not now")
            return ctx.attempt
        case {"do": "hold"}:
            await asyncio.Event().wait()
        case {"do": "sleep", "seconds": seconds}:
            await asyncio.sleep(seconds)
            return ctx.attempt
        case {"do": "once", "seconds": seconds}:
            await asyncio.sleep(seconds if ctx.attempt == 1 else 0)
            return ctx.attempt
        case {"do": "await", "file": path}:
            await appearance_of(path)
            return ctx.attempt
        case {"do": "stubborn", "seconds": seconds}:
            # Holds the loop, as careless user code does.
            threading.Event().wait(seconds)
            return "too late"
        case {"do": "large", "bytes": size}:
            return "x" * size
        case {"do": "nul"}:
            return "a\x00b"
        case {"do": "twice"}:
            TWICE.add(ctx.lease_id)
            return ctx.attempt
        case {"do": "late", "file": path}:
            return await late(ctx, path)
        case {"do": "checkpoint" | "effect" | "charge" | "outside" as what}:
            return await WRITES[what](ctx)
    raise Permanent(f"unknown: {payload}")


async def appearance_of(path: str) -> None:
    """Returns when there is such a file: by it a test says when an attempt may end."""
    while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240, PTH110 - another process makes it, and a look is cheap
        await asyncio.sleep(0.02)


# What a handler writes while it works


async def checkpoint(ctx: TaskContext) -> Any:
    """Saves where it is and fails; the next attempt finds it."""
    if ctx.checkpoint is None:
        await ctx.save_checkpoint({"by": ctx.attempt})
        raise RuntimeError("not yet")
    return ctx.checkpoint


async def effect(ctx: TaskContext) -> Any:
    """Makes an effect and fails; the next attempt sees that it was made. One that was given up is made anew."""
    given_up = ctx.receipt("given up")
    await given_up.claim("it")
    await given_up.abandon()
    made = ctx.receipt("made")
    answer = await made.claim("it")
    if answer == "new":
        await made.commit({"made by": ctx.attempt})
        raise RuntimeError("not yet")
    return [answer, await given_up.claim("it"), made.value]


async def charge(ctx: TaskContext) -> Any:
    """Charges two calls, one of them twice."""
    usage = {"model": "sim-small", "input_uncached": 10}
    return [await ctx.charge(usage, call=call) for call in ("one", "one", "two")]


async def outside(ctx: TaskContext) -> Any:
    """Asks for what only steps of a run can have."""
    try:
        await ctx.save_checkpoint(1)
    except WriteRefused as error:
        return error.code


async def late(ctx: TaskContext, path: str) -> Any:
    """Writes when it is told to."""
    await appearance_of(path)
    await ctx.save_checkpoint({"by": ctx.attempt})
    return ctx.attempt


WRITES = {"checkpoint": checkpoint, "effect": effect, "charge": charge, "outside": outside}


def main() -> None:
    """Run until told to stop."""
    transport, url, token, pool, slots, *labels = sys.argv[1:]
    skew_s = float(os.environ.get("SKEW_S", "0"))
    real = time.time
    time.time = lambda: real() + skew_s
    named = dict(label.split("=", 1) for label in labels)
    worker = TwiceWorker(
        url,
        pool,
        handle,
        slots=int(slots),
        token=token,
        labels=named,
        grace=10.0,
        transport=cast("Transport", transport),
    )
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
