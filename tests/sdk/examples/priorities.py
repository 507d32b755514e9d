"""Four classes and one slot: what matters goes first, whatever came first."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq


async def main() -> list[str]:
    """The order in which the work began."""
    order: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()

    async def run(ctx: cronoq.TaskContext, name: str) -> None:
        order.append(name)
        begun.set()
        if name == "first":
            await gate.wait()

    async with cronoq.Scheduler([cronoq.Pool("work", run, max=1)]) as sched:
        handles = [await sched.submit("first", pool="work")]
        await begun.wait()
        handles += [
            await sched.submit(name, pool="work", priority=cronoq.Priority(name))
            for name in ("low", "normal", "high", "critical")
        ]
        gate.set()
        await asyncio.gather(*handles)
    return order
