"""What an executor raises decides whether there is another attempt."""

from __future__ import annotations

from scheduler import sdk as cronoq


async def main() -> dict[str, str]:
    """How each task ended."""

    async def run(ctx: cronoq.TaskContext, payload: str) -> str:
        if payload == "throttled" and ctx.attempt < 3:
            raise cronoq.Retryable("429", retry_after=0.05)
        if payload == "bad":
            raise cronoq.Permanent("no such model")
        if payload in {"hopeless", "fragile"}:
            raise ConnectionError("the line is down")
        return f"attempt {ctx.attempt}"

    quick = cronoq.RetryPolicy(max_attempts=3, initial_backoff=0.01)
    async with cronoq.Scheduler([cronoq.Pool("work", run, retry=quick)]) as sched:
        handles = {name: await sched.submit(name, pool="work") for name in ("throttled", "bad", "hopeless")}
        handles["fragile"] = await sched.submit("fragile", pool="work", retry=cronoq.RetryPolicy.none())
        ends = {}
        for name, handle in handles.items():
            try:
                ends[name] = await handle
            except cronoq.TaskFailed as failed:
                ends[name] = f"{failed.status}: {failed.message}"
    return ends
