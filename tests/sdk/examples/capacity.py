"""Slots are what the caller says they are, while it runs."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq


async def main() -> list[int]:
    """How many ran at once, before and after."""
    begun: asyncio.Queue[int] = asyncio.Queue()
    gate = asyncio.Event()

    async def run(ctx: cronoq.TaskContext, payload: None) -> None:
        begun.put_nowait(ctx.id)
        await gate.wait()

    seen = []
    async with cronoq.Scheduler([cronoq.Pool("work", run, min=0, max=4, initial=1)]) as sched:
        handles = [await sched.submit(None, pool="work") for _ in range(6)]
        for capacity, more in ((1, 1), (3, 2), (4, 1)):
            await sched.set_capacity("work", capacity)
            for _ in range(more):
                await begun.get()
            seen.append((await sched.snapshot("work")).busy)
        gate.set()
        await asyncio.gather(*handles)
    return seen
