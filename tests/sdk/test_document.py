"""The Python of the LLM document runs as it is written there."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq
from scheduler.reads.pools import pool_detail
from scheduler.reads.resources import resource_detail
from tests.conftest import LiveDatabase


def test_the_setup_for_llm_workloads_runs_as_written(live_database: LiveDatabase) -> None:
    asked = []

    async def call_model(ctx: cronoq.TaskContext, prompt: dict[str, str]) -> str:
        asked.append((ctx.pool, prompt["user"]))
        return "Hello."

    chat = {"user": "Say hello."}

    async def main() -> None:
        # fmt: off
        limits = [cronoq.Resource.token_bucket("openai", rate=50.0, burst=100),
                  cronoq.Resource.semaphore("openai-concurrency", 20)]
        pool = cronoq.Pool("llm", call_model, min=2, max=64,
                           autoscale=cronoq.AutoscaleConfig(slo={"high": 2.0}))
        async with cronoq.Scheduler([pool], resources=limits) as sched:
            await sched.submit(chat, pool="llm", priority="high", deadline_in=2.0,
                               resources={"openai": 1, "openai-concurrency": 1})
            # fmt: on
            again = await sched.submit(chat, pool="llm", priority="high")
            assert await again == "Hello."

    asyncio.run(main())
    assert asked == [("llm", "Say hello.")] * 2
    pool = pool_detail("llm")
    assert (pool.settings.slots_min, pool.settings.slots_max, pool.settings.slo) == (2, 64, {"high": 2.0})
    assert resource_detail("openai").declared.rate == 50.0
    assert resource_detail("openai-concurrency").declared.permits == 20
