"""A schedule with seconds in a time zone; its tasks carry the time in their key."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq


async def main() -> dict[str, object]:
    """What ran, and whether the schedule was there to be removed, once and twice."""
    keys: list[str] = []
    twice = asyncio.Event()

    async def run(ctx: cronoq.TaskContext, payload: dict[str, str]) -> None:
        keys.append(f"{payload['report']} {ctx.key}")
        if len(keys) >= 2:
            twice.set()

    async with cronoq.Scheduler([cronoq.Pool("work", run)]) as sched:
        await sched.add_recurring(
            "reports", "* * * * * *", {"report": "sales"}, tz="Europe/Lisbon", overlap="allow", pool="work", key="sales"
        )
        await twice.wait()
        removed = [await sched.remove_recurring("reports"), await sched.remove_recurring("reports")]
    return {
        "distinct": len(set(keys)) == len(keys),
        "named": all(k.startswith("sales sales@") for k in keys),
        "removed": removed,
    }
