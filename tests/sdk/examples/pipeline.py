"""A graph with every kind of edge, submitted as one batch: what was met runs, what cannot be met is skipped."""

from __future__ import annotations

from scheduler import sdk as cronoq
from scheduler.sdk import Dep, Task


async def main() -> dict[str, str]:
    """How each task ended."""

    async def run(ctx: cronoq.TaskContext, payload: str) -> str:
        if payload == "fails":
            raise cronoq.Permanent("bad input")
        known = {name: parent["state"] for name, parent in ctx.upstream.items()}
        return f"{ctx.key} after {known}" if known else str(ctx.key)

    async with cronoq.Scheduler([cronoq.Pool("work", run)]) as sched:
        handles = await sched.submit_batch(
            [
                Task("works", pool="work", key="fetch"),
                Task("fails", pool="work", key="parse", deps=[Dep("fetch")]),
                Task("works", pool="work", key="publish", deps=[Dep("parse")]),
                Task("works", pool="work", key="alert", deps=[Dep("parse", on="failure")]),
                Task("works", pool="work", key="clean up", deps=[Dep("parse", on="complete"), Dep("fetch")]),
                Task("works", pool="work", key="calm", deps=[Dep("fetch", on="failure")]),
            ]
        )
        ends: dict[str, str] = {}
        for handle in handles:
            try:
                ends[str(handle.key)] = await handle
            except cronoq.TaskFailed as failed:
                ends[str(handle.key)] = failed.status
    return ends
