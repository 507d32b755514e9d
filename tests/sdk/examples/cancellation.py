"""Work that waits is cancelled at once; an attempt that runs is cancelled as an asyncio task is."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq


async def main() -> dict[str, object]:
    """What the attempt noticed, and how both ended."""
    noticed = asyncio.Event()
    begun = asyncio.Event()

    async def run(ctx: cronoq.TaskContext, payload: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if ctx.is_cancelled():
                noticed.set()
            raise

    async with cronoq.Scheduler([cronoq.Pool("work", run, max=1)]) as sched:
        running = await sched.submit("runs", pool="work")
        await begun.wait()
        waiting = await sched.submit("waits", pool="work")
        answers = [await waiting.cancel(), await sched.cancel(running)]
        ends = []
        for handle in (waiting, running):
            try:
                await handle
            except cronoq.TaskFailed as failed:
                ends.append(failed.status)
        answers.append(await sched.cancel(waiting))
        return {"noticed": noticed.is_set(), "ends": ends, "answers": answers, "status": await sched.status(running)}
