"""Every move of a task as it happens; a reader that is too slow is told so."""

from __future__ import annotations

from scheduler import sdk as cronoq


async def main() -> dict[str, object]:
    """The moves of one task that fails once, and what a reader with room for one event is told."""

    async def run(ctx: cronoq.TaskContext, payload: str) -> None:
        if ctx.attempt == 1:
            raise cronoq.Retryable("again", retry_after=0.3)

    pool = cronoq.Pool("work", run)
    async with cronoq.Scheduler([pool], emit_transitions=True) as sched:
        moves = []
        events = sched.events()
        await sched.enqueue("flaky", pool="work", kind="demo")
        async for event in events:
            moves.append((event.status, event.attempt))
            if event.status == "succeeded":
                break
    async with cronoq.Scheduler([pool], event_capacity=1) as sched:
        slow = sched.events(on_lag="raise")
        for handle in [await sched.submit("flaky", pool="work") for _ in range(3)]:
            await handle
    try:
        await anext(slow)
        lagged = 0
    except cronoq.EventsLagged as error:
        lagged = error.missed
    rest = [event.status async for event in slow]
    return {"moves": moves, "lagged": lagged, "rest": rest}
