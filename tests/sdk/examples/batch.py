"""A batch is taken as a whole or not at all, and keys make a second submission harmless."""

from __future__ import annotations

from scheduler import sdk as cronoq
from scheduler.sdk import Task


async def main() -> dict[str, object]:
    """What was refused, what was done how often."""
    done: list[int] = []
    refused = ""

    def run(ctx: cronoq.TaskContext, number: int) -> int:
        done.append(number)
        return number * number

    async with cronoq.Scheduler([cronoq.Pool("work", run)]) as sched:
        try:
            await sched.submit_batch([Task(1, pool="work"), Task(2, pool="nowhere")])
        except cronoq.SubmitError as error:
            refused = error.code
        tasks = [Task(number, pool="work", key=f"square {number}") for number in range(5)]
        first = await sched.submit_batch(tasks)
        again = await sched.submit_batch(tasks)
        squares = [await handle for handle in again]
    return {
        "refused": refused,
        "squares": squares,
        "same": [a.id for a in first] == [b.id for b in again],
        "duplicates": [handle.duplicate for handle in again],
        "runs": sorted(done),
    }
