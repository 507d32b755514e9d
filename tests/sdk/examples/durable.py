"""Work that survives its program: keys name what is to be done, and starting again goes on.

Each piece of work leaves a line in the file that the first argument names, before and after.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from scheduler import sdk as cronoq
from scheduler.sdk import Task

PIECES = 30


async def main(journal: Path) -> int:
    """Do what is left; the number of pieces that have succeeded by then."""

    async def run(ctx: cronoq.TaskContext, number: int) -> int:
        with journal.open("a") as lines:
            lines.write(f"began {number}\n")
        await asyncio.sleep(0.05)
        with journal.open("a") as lines:
            lines.write(f"did {number}\n")
        return number

    pool = cronoq.Pool("work", run, max=3, lease_ttl=1.0, retry=cronoq.RetryPolicy(10, initial_backoff=0.05))
    async with cronoq.Scheduler([pool]) as sched:
        handles = await sched.submit_batch([Task(n, pool="work", key=f"piece {n}") for n in range(PIECES)])
        return len({await handle for handle in handles})


if __name__ == "__main__":
    print(asyncio.run(main(Path(sys.argv[1]))), flush=True)  # noqa: T201 - a program for a terminal
