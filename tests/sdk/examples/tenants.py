"""A quiet tenant does not wait behind a noisy one, and weights are the shares."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq
from scheduler.sdk import Task


async def main() -> list[str]:
    """Whose work began, in order, once both tenants were there."""
    order: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()

    async def run(ctx: cronoq.TaskContext, payload: str) -> None:
        order.append(ctx.tenant)
        begun.set()
        await gate.wait()

    pool = cronoq.Pool("work", run, max=1, fair_share=True, tenant_weights={"gold": 3.0, "free": 1.0})
    async with cronoq.Scheduler([pool]) as sched:
        handles = await sched.submit_batch([Task("x", pool="work", tenant="free") for _ in range(12)])
        await begun.wait()
        handles += await sched.submit_batch([Task("x", pool="work", tenant="gold") for _ in range(9)])
        gate.set()
        await asyncio.gather(*handles)
    return order[1:13]
