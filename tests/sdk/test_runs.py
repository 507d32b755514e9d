"""Steps of agent runs through the embedded scheduler: checkpoints and effects made once."""

from __future__ import annotations

import asyncio

from scheduler import sdk as cronoq
from scheduler.models import Attempt
from scheduler.sdk.embedded.declare import tenant_id
from scheduler.services.runs import create_run
from tests.conftest import LiveDatabase


def test_a_step_that_is_tried_again_makes_its_effect_once(live_database: LiveDatabase) -> None:
    refunds: list[str] = []
    seen: list[object] = []

    async def agent(ctx: cronoq.TaskContext, order: int) -> object:
        seen.append((ctx.run, ctx.checkpoint))
        receipt = ctx.receipt("refund")
        if await receipt.claim(f"order {order}") == "new":
            refunds.append(receipt.key)
            await receipt.commit({"refunded": order})
        await ctx.save_checkpoint({"attempt": ctx.attempt})
        if ctx.attempt == 1:
            raise cronoq.Retryable("the mail did not go out", retry_after=0.01)
        return receipt.value

    async def caller(ctx: cronoq.TaskContext, payload: None) -> list[object]:
        charged: list[object] = [await ctx.charge({"model": "m", "input_tokens": 5}) for _ in range(2)]
        try:
            await ctx.charge({"model": "m"}, call="x" * 101)
        except cronoq.WriteRefused as error:
            charged.append(error.code)
        return charged

    def plain(ctx: cronoq.TaskContext, payload: None) -> int:
        return ctx.wait(ctx.save_checkpoint("plain"))

    run = create_run(tenant_id("acme"), '"refund order 7"').id

    async def main() -> list[object]:
        async with cronoq.Scheduler(
            [cronoq.Pool("agents", agent), cronoq.Pool("plain", plain), cronoq.Pool("calls", caller)]
        ) as sched:
            step = await sched.submit(7, pool="agents", tenant="acme", run=run, effect="write")
            done = [await step]
            done.append(await (await sched.submit(None, pool="plain", tenant="acme", run=run)))
            done.append(await (await sched.submit(None, pool="calls")))
            outside = await sched.submit(8, pool="agents")
            try:
                await outside
            except cronoq.TaskFailed as failed:
                done.append(failed.status)
            return done

    assert asyncio.run(main()) == [{"refunded": 7}, 3, [True, True, "bad_call"], "failed"]
    assert Attempt.objects.get(usage__isnull=False).usage == {"model": "m", "input_tokens": 10}
    assert len(refunds) == 1
    assert seen[:2] == [(run, None), (run, {"attempt": 1})]
