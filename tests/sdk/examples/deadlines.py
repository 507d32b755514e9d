"""A soft deadline makes work urgent as its latest start comes near: low work may then pass high work."""

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
        handles.append(await sched.submit("high", pool="work", priority="high"))
        handles.append(await sched.submit("low", pool="work", priority="low"))
        handles.append(await sched.submit("low, urgent", pool="work", priority="low", deadline_in=0.5, duration_hint=1))
        gate.set()
        await asyncio.gather(*handles)
    return order
