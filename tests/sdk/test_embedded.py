"""What an embedded scheduler promises besides what its examples show."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from scheduler import sdk as cronoq
from scheduler.models import AuditEvent
from scheduler.sdk import Pool, Resource, Scheduler, SchedulerError, SubmitError, Task
from scheduler.services.pools import edit_pool, load_pool, pause_pool, resume_pool
from scheduler.services.resources import load_resource
from tests.conftest import LiveDatabase
from tests.sdk.support import until

pytestmark = pytest.mark.usefixtures("live_database")


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(60.0):
            return await main()

    return asyncio.run(limited())


async def echo(ctx: cronoq.TaskContext, payload: Any) -> Any:
    return payload


async def nothing() -> None:
    """A program that only declares."""


def declared(*pools: Pool, resources: tuple[Resource, ...] = ()) -> None:
    async def main() -> None:
        async with Scheduler(pools, resources):
            await nothing()

    run(main)


def test_a_full_pool_lets_its_submitters_wait_in_line() -> None:
    order: list[int] = []

    async def main() -> None:
        gate = asyncio.Event()

        async def work(ctx: cronoq.TaskContext, number: int) -> None:
            order.append(number)
            await gate.wait()

        async with Scheduler([Pool("p", work, max=1, max_pending=2)]) as sched:
            await sched.submit(0, pool="p")
            await until(lambda: order == [0])
            submitting = [asyncio.create_task(sched.submit(number, pool="p")) for number in range(1, 7)]
            await until(lambda: sum(task.done() for task in submitting) == 2)
            assert (await sched.snapshot("p")).pending == 2
            gate.set()
            for handle in await asyncio.gather(*submitting):
                await handle

    run(main)
    assert order == list(range(7))


def test_a_pool_that_rejects_says_when_to_come_back() -> None:
    async def main() -> SubmitError:
        async with Scheduler([Pool("p", None, max_pending=1, overflow="reject")]) as sched:
            await sched.submit(1, pool="p")
            with pytest.raises(SubmitError) as raised:
                await sched.submit(2, pool="p")
            return raised.value

    error = run(main)
    assert (error.code, error.retry_after is not None) == ("overloaded", True)


class Hex:
    """Bytes as text."""

    def encode(self, value: bytes) -> str:
        return value.hex()

    def decode(self, value: str) -> bytes:
        return bytes.fromhex(value)


def test_a_codec_makes_json_of_the_callers_own_types() -> None:
    seen = []

    async def work(ctx: cronoq.TaskContext, payload: bytes) -> bytes:
        seen.append(payload)
        return payload[::-1]

    async def main() -> Any:
        async with Scheduler([Pool("p", work)], codec=Hex()) as sched:
            return await (await sched.submit(b"abc", pool="p"))

    assert run(main) == b"cba"
    assert seen == [b"abc"]


def test_every_kind_of_callable_is_an_executor() -> None:
    class Adder:
        async def __call__(self, _ctx: cronoq.TaskContext, payload: int) -> int:
            return payload + 3

    async def add(by: int, ctx: cronoq.TaskContext, payload: int) -> int:
        return payload + by

    def plain(ctx: cronoq.TaskContext, payload: int) -> int:
        return payload + 1

    executors: dict[str, Any] = {
        "plain": plain,
        "partial": partial(add, 2),
        "object": Adder(),
        "lambda": lambda ctx, payload: add(4, ctx, payload),
    }

    async def main() -> list[int]:
        async with Scheduler([Pool(name, executor) for name, executor in executors.items()]) as sched:
            return [await (await sched.submit(0, pool=name)) for name in executors]

    assert run(main) == [1, 2, 3, 4]


def test_what_code_declares_goes_before_what_was_there_and_the_rest_stays() -> None:
    limit = Resource.token_bucket("api", rate=5, burst=10)
    declared(Pool("p", echo, max=8, initial=4), resources=(limit,))
    assert load_pool("p").settings.slots == 4
    edit_pool("p", load_pool("p").version, {"slots": 2, "timeout_s": 9.0}, actor="op")
    pause_pool("p", actor="op", reason="lunch")
    quicker = Resource.token_bucket("api", rate=7, burst=10)
    declared(Pool("p", echo, max=8, initial=4, retry=cronoq.RetryPolicy(max_attempts=9)), resources=(quicker,))
    pool = load_pool("p")
    settings = pool.settings
    assert (settings.max_attempts, settings.slots, settings.timeout_s, pool.paused_by) == (9, 2, 9.0, "op")
    assert load_resource("api").declared.rate == 7
    version = pool.version
    declared(Pool("p", echo, max=8, initial=4, retry=cronoq.RetryPolicy(max_attempts=9)), resources=(quicker,))
    assert load_pool("p").version == version
    resume_pool("p", actor="op")
    declared(Pool("p", echo, max=16, initial=6, retry=cronoq.RetryPolicy(max_attempts=9)))
    assert load_pool("p").settings.slots == 6
    assert AuditEvent.objects.filter(actor="sdk", action="pool.edit").count() == 2


def test_what_cannot_be_declared_is_a_sentence() -> None:
    declared(Pool("p", echo), resources=(Resource.semaphore("gpu", 1),))
    with pytest.raises(SchedulerError, match=r"'gpu' that is a semaphore, not a token_bucket"):
        declared(Pool("p", echo), resources=(Resource.token_bucket("gpu", 1, 1),))
    with pytest.raises(SchedulerError, match="min"):
        declared(Pool("q", echo, min=5, max=1))
    with pytest.raises(SchedulerError, match="same name"):
        Scheduler([Pool("p", echo), Pool("p", echo)])
    with pytest.raises(SchedulerError, match="leave database= out"):
        run(Scheduler([], database="postgresql://elsewhere/x").start)


REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"priority": "urgent"}, "invalid", "priority is one of critical, high, normal, low"),
    ({"deadline_in": 1, "deadline_at": 2.0}, "invalid", "not both"),
    ({"start_at": datetime(2030, 1, 1)}, "invalid", "needs a time zone"),  # noqa: DTZ001 - that is the point
    ({"timeout": -1}, "invalid", "timeout is a number of seconds"),
    ({"resources": {"nope": 1}}, "unknown_resource", "nope"),
    ({"resources": {"api": 11}}, "resource_exceeds_capacity", "api"),
    ({"after": "nobody"}, "unknown_dependency", "nobody"),
    ({"pool": "nowhere"}, "unknown_pool", "nowhere"),
    ({"payload": {"x": float("nan")}}, "bad_payload", "x: NaN"),
    ({"payload": object()}, "bad_payload", "codec"),
    ({"tenant": "No Slug"}, None, "slug"),
]


def test_a_submission_that_cannot_be_taken_says_what_to_change() -> None:
    async def main() -> list[tuple[str | None, str]]:
        said = []
        async with Scheduler([Pool("p", None)], [Resource.token_bucket("api", rate=1, burst=10)]) as sched:
            for fields, _, _ in REFUSED:
                given: dict[str, Any] = {"payload": 1, "pool": "p"} | fields
                with pytest.raises(SchedulerError) as raised:
                    await sched.submit(**given)
                said.append((getattr(raised.value, "code", None), str(raised.value)))
        return said

    for (fields, code, words), (found, text) in zip(REFUSED, run(main), strict=True):
        assert found == code, fields
        assert words in text, fields


def test_times_are_durations_and_moments_of_python_too() -> None:
    async def main() -> list[str | None]:
        async with Scheduler([Pool("p", None)]) as sched:
            hour = timedelta(hours=1)
            tasks = [
                Task(1, pool="p", start_in=hour),
                Task(1, pool="p", start_at=datetime.now(UTC) + hour, deadline_in=2 * hour),
                Task(1, pool="p", start_in=hour, tolerance=5, on_miss="skip", expires_in=timedelta(days=1)),
            ]
            return [await sched.status(handle) for handle in await sched.submit_batch(tasks)]

    assert run(main) == ["scheduled"] * 3


def test_a_scheduler_that_is_shut_down_keeps_its_work_and_says_so() -> None:
    async def main() -> tuple[int, str | None]:
        begun = asyncio.Event()
        gate = asyncio.Event()

        async def work(ctx: cronoq.TaskContext, payload: None) -> str:
            begun.set()
            await gate.wait()
            return f"attempt {ctx.attempt}"

        sched = Scheduler([Pool("p", work)], shutdown_grace=30.0)
        with pytest.raises(SchedulerError, match="does not run"):
            await sched.submit(None, pool="p")
        await sched.start()
        handle = await sched.submit(None, pool="p")
        waiting = asyncio.create_task(handle.result())
        await begun.wait()
        await sched.shutdown(grace=0.0)
        with pytest.raises(SchedulerError, match="was shut down before task"):
            await waiting
        gate.set()
        await sched.start()
        result = await sched.handle(handle.id)
        await sched.shutdown()
        await sched.shutdown()
        return handle.id, result

    _, result = run(main)
    # It was handed back, its attempt unspent.
    assert result == "attempt 1"


def test_two_schedulers_share_a_database_and_each_runs_what_it_has_executors_for(live_database: LiveDatabase) -> None:
    async def main() -> list[str]:
        async def answer(name: str, ctx: cronoq.TaskContext, payload: None) -> str:
            return name

        async with (
            Scheduler([Pool("a", partial(answer, "first")), Pool("b", None)]) as first,
            Scheduler([Pool("b", partial(answer, "second"))]) as second,
        ):
            handles = [await first.submit(None, pool="b"), await second.submit(None, pool="a")]
            return [await handle for handle in handles]

    assert run(main) == ["second", "first"]


def test_tasks_that_ask_for_labels_run_where_slots_carry_them() -> None:
    async def main() -> list[str | None]:
        async with Scheduler([Pool("p", echo)]) as sched:
            asks = await sched.submit("labelled", pool="p", labels={"gpu": "a100"})
            assert await (await sched.submit("plain", pool="p")) == "plain"
            before = await sched.status(asks)
            await sched.set_group_capacity("p", {"gpu": "a100"}, 1)
            with pytest.raises(SchedulerError, match="no executor"):
                await sched.set_group_capacity("q", {"gpu": "a100"}, 1)
            return [before, await asks]

    assert run(main) == ["ready", "labelled"]
