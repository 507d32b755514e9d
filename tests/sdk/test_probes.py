"""Eight situations in which schedulers are known to go wrong, through the embedded scheduler, in real time.

What is asserted are orders and conditions; how fast the machine is decides none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db import connection

from scheduler import sdk as cronoq
from scheduler.models import Attempt
from scheduler.models import Task as Row
from scheduler.sdk import Pool, Resource, Scheduler, Task
from tests.conftest import LiveDatabase
from tests.sdk.support import until

pytestmark = pytest.mark.usefixtures("live_database")


class Stage:
    """Remembers in which order work began, and lets named work last until it is let go."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def run(self, _ctx: cronoq.TaskContext, name: str) -> None:
        """An executor."""
        self.order.append(name)
        if name in self.gates:
            await self.gates[name].wait()

    def hold(self, *names: str) -> None:
        """Work of these names lasts until it is let go."""
        self.gates |= {name: asyncio.Event() for name in names}

    async def begun(self, name: str, times: int = 1) -> None:
        """Wait until work of that name has begun so often."""
        await until(lambda: self.order.count(name) >= times)


def play(scene: Callable[[Stage], Awaitable[None]]) -> list[str]:
    async def main() -> list[str]:
        stage = Stage()
        async with asyncio.timeout(90.0):
            await scene(stage)
        return stage.order

    return asyncio.run(main())


async def emptied(sched: Scheduler, bucket: str, burst: int, pool: str) -> None:
    """Have the bucket empty."""
    for handle in await sched.submit_batch([Task("drain", pool=pool, resources={bucket: 1}) for _ in range(burst)]):
        await handle


def batch(name: str, count: int, **fields: Any) -> list[Task]:
    return [Task(name, **fields) for _ in range(count)]


async def ended(handles: list[cronoq.TaskHandle]) -> None:
    await asyncio.gather(*handles)


def test_work_that_needs_nothing_starts_past_work_that_waits_for_an_empty_bucket() -> None:
    async def scene(stage: Stage) -> None:
        limits = [Resource.token_bucket("api", rate=2, burst=2, margin=0)]
        async with Scheduler([Pool("p", stage.run, max=20)], limits) as sched:
            await emptied(sched, "api", 2, "p")
            limited = batch("limited", 4, pool="p", resources={"api": 1})
            await ended(await sched.submit_batch([*limited, *batch("free", 6, pool="p")]))

    order = play(scene)[2:]
    assert order[:8].count("free") == 6, order
    assert order.count("limited") == 4


def test_priority_holds_across_pools_that_share_a_limit() -> None:
    async def scene(stage: Stage) -> None:
        limits = [Resource.token_bucket("api", rate=4, burst=4, margin=0)]
        async with Scheduler([Pool("a", stage.run), Pool("b", stage.run)], limits) as sched:
            await emptied(sched, "api", 4, "a")
            handles = await sched.submit_batch(batch("low", 8, pool="b", priority="low", resources={"api": 1}))
            handles += await sched.submit_batch(batch("high", 4, pool="a", priority="high", resources={"api": 1}))
            await ended(handles)

    order = play(scene)[4:]
    # A token or two may have come before the high ones did.
    first = order.index("high")
    assert first <= 3, order
    assert order[first : first + 4] == ["high"] * 4, order


def test_a_large_request_is_not_starved_by_a_stream_of_small_ones() -> None:
    async def scene(stage: Stage) -> None:
        limits = [Resource.token_bucket("api", rate=10, burst=10, margin=0)]
        async with Scheduler([Pool("p", stage.run, max=50)], limits) as sched:
            await emptied(sched, "api", 10, "p")
            handles = await sched.submit_batch(batch("before", 3, pool="p", resources={"api": 1}))
            handles.append(await sched.submit("large", pool="p", resources={"api": 8}))
            # Of another tenant, so that no lane has them in one order.
            for _ in range(10):
                handles.append(await sched.submit("small", pool="p", tenant="other", resources={"api": 1}))
                await stage_beat()
            await ended(handles)

    order = play(scene)[10:]
    assert order.index("large") <= 3 + 2, order


async def stage_beat() -> None:
    """A twelfth of a second, the pace of the stream."""
    beat = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(1 / 12, beat.set_result, None)
    await beat


def test_a_task_that_needs_two_permits_goes_before_younger_ones_that_need_one_of_them() -> None:
    async def scene(stage: Stage) -> None:
        stage.hold("x", "y1")
        limits = [Resource.semaphore("x", 1), Resource.semaphore("y", 1)]
        async with Scheduler([Pool("p", stage.run)], limits) as sched:
            handles = [await sched.submit("x", pool="p", resources={"x": 1})]
            await stage.begun("x")
            handles.append(await sched.submit("xy", pool="p", resources={"x": 1, "y": 1}))
            handles.append(await sched.submit("y1", pool="p", resources={"y": 1}))
            await stage.begun("y1")
            handles.append(await sched.submit("y2", pool="p", resources={"y": 1}))
            stage.gates["x"].set()
            await handles[0]
            stage.gates["y1"].set()
            await ended(handles)

    assert play(scene) == ["x", "y1", "xy", "y2"]


def test_tasks_told_to_come_back_later_do_not_come_back_together(live_database: LiveDatabase) -> None:
    async def main() -> tuple[list[float], list[float]]:
        told = 30.0
        raised: list[float] = []

        async def run(ctx: cronoq.TaskContext, payload: None) -> None:
            raised.append(asyncio.get_running_loop().time())
            raise cronoq.Retryable("429", retry_after=told)

        async with Scheduler([Pool("p", run)]) as sched:
            handles = await sched.submit_batch([Task(None, pool="p") for _ in range(3)])
            for handle in handles:
                await until(lambda handle=handle: _is(sched, handle, "retrying"))  # type: ignore[misc]  # bound at once
            rests = await asyncio.to_thread(_rests, [handle.id for handle in handles])
            for handle in handles:
                await handle.cancel()
        return rests, raised

    rests, raised = asyncio.run(main())
    assert len(raised) == 3
    assert min(rests) >= 30.0
    assert max(rests) <= 31.0 + 0.001
    assert len(set(rests)) == 3


async def _is(sched: Scheduler, handle: cronoq.TaskHandle, status: str) -> bool:
    return await sched.status(handle) == status


def _rests(tasks: list[int]) -> list[float]:
    """Between the end of each task's last attempt and its next, in seconds."""
    try:
        dues = {row.pk: row.due_at for row in Row.objects.filter(pk__in=tasks)}
        ends = {row.task_id: row.finished_at for row in Attempt.objects.filter(task_id__in=tasks)}
    finally:
        connection.close()
    return [(due - ends[task]).total_seconds() for task, due in dues.items() if due is not None]


def test_low_work_keeps_its_share_under_a_saturating_backlog_of_high_work() -> None:
    async def scene(stage: Stage) -> None:
        stage.hold("first")
        async with Scheduler([Pool("p", stage.run, max=1)]) as sched:
            handles = [await sched.submit("first", pool="p", priority="critical")]
            await stage.begun("first")
            handles += await sched.submit_batch(batch("high", 90, pool="p", priority="high"))
            handles += await sched.submit_batch(batch("low", 4, pool="p", priority="low"))
            stage.gates["first"].set()
            await ended(handles)

    order = play(scene)[1:]
    for low in range(1, 5):
        assert order[: 22 * low].count("low") >= low - 1, order


def test_a_quiet_tenant_does_not_wait_behind_a_noisy_one() -> None:
    async def scene(stage: Stage) -> None:
        stage.hold("first")
        async with Scheduler([Pool("p", stage.run, max=1, fair_share=True)]) as sched:
            handles = [await sched.submit("first", pool="p", tenant="noisy")]
            await stage.begun("first")
            handles += await sched.submit_batch(batch("noisy", 40, pool="p", tenant="noisy"))
            handles += await sched.submit_batch(batch("quiet", 5, pool="p", tenant="quiet"))
            stage.gates["first"].set()
            await ended(handles)

    order = play(scene)[1:]
    places = [place for place, name in enumerate(order) if name == "quiet"]
    assert all(place <= most for place, most in zip(places, [2, 4, 6, 8, 10], strict=True)), places


def test_an_autoscaled_pool_has_the_slots_that_its_backlog_needs_within_a_few_looks() -> None:
    seen: list[int] = []

    async def main() -> None:
        gate = asyncio.Event()

        async def run(ctx: cronoq.TaskContext, payload: None) -> None:
            await gate.wait()

        scale = cronoq.AutoscaleConfig(interval=0.2, drain_time=0.5)
        async with Scheduler([Pool("p", run, min=0, max=64, autoscale=scale, default_duration=0.2)]) as sched:
            await sched.submit_batch([Task(None, pool="p") for _ in range(300)])

            async def look() -> bool:
                capacity = (await sched.snapshot("p")).capacity
                if not seen or capacity != seen[-1]:
                    seen.append(capacity)
                return capacity == 64

            try:
                await until(look)
            except TimeoutError:
                raise AssertionError((seen, await sched.snapshot("p"))) from None
            gate.set()

    asyncio.run(main())
    # Doubled at each look at least: 0, 4, 8, 16, 32, 64.
    assert len(seen) <= 7, seen
