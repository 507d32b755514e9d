"""The scenarios. Each lays its own world, measures one thing and gives readings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from asgiref.sync import sync_to_async

from scheduler.bench.console import console
from scheduler.bench.forecasting import forecast
from scheduler.bench.operations import operations
from scheduler.bench.runs import runs
from scheduler.bench.workers import workers
from scheduler.bench.world import (
    BATCH,
    LIMIT,
    Reading,
    engine_running,
    fill,
    fresh_world,
    pool_id,
    progress,
    submission,
    until,
)
from scheduler.engine.doorbell import ring
from scheduler.interpreter import settle_in
from scheduler.policy.figures import quantile
from scheduler.policy.lanebook import LaneBook
from scheduler.policy.plan import make_plan
from scheduler.policy.types import Plan, Snapshot, WorkerId
from scheduler.services import heartbeat
from scheduler.services.dispatch import dispatch
from scheduler.services.events import listen
from scheduler.services.submit import submit
from scheduler.store import bench as store
from scheduler.store import overview

in_thread = sync_to_async
REPEATED: Final = 5


async def enqueue(*, tasks: int = 100_000) -> list[Reading]:
    """Tasks stored per second, in batches of 1,000."""
    tenants = await in_thread(fresh_world)(slots=100)
    took_s = await in_thread(fill)(tenants, tasks, what="enqueue")
    return [Reading("enqueue", tasks / took_s, "tasks/s", {"tasks": tasks, "batch": BATCH})]


async def drain(*, tasks: int = 20_000, slots: int = 100, tenants: int = 1) -> list[Reading]:
    """No-op tasks run and settled per second by one engine, limits, leases and attempt history on."""
    rate = await _drain_rate(tasks=tasks, slots=slots, tenants=tenants, waiting=0)
    return [Reading("drain", rate, "tasks/s", {"tasks": tasks, "slots": slots, "tenants": tenants})]


async def _drain_rate(
    *, tasks: int, slots: int, tenants: int, waiting: int, listened: bool = False, priced: bool = False
) -> float:
    who = await in_thread(fresh_world)(slots=slots, tenants=tenants, priced=priced)
    await in_thread(fill)(who, tasks + waiting, what="fill")
    await in_thread(store.settle_down)()
    if listened:
        await in_thread(listen)(None)
    done = 0
    began = 0.0

    async def handler(_ctx: object, _payload: object) -> None:
        nonlocal done, began
        began = began or time.perf_counter()
        done += 1
        if done % BATCH == 0:
            progress("drain", min(done, tasks), tasks)

    async with engine_running(handler) as engine:
        await until(lambda: engine.settled >= tasks)
        return engine.settled / (time.perf_counter() - began)


async def latency(*, per_s: int = 50, seconds: int = 20) -> list[Reading]:
    """Milliseconds from the call of submit to the start of the handler, on an idle engine."""
    tenants = await in_thread(fresh_world)(slots=100)
    sent: dict[int, float] = {}
    started: dict[int, float] = {}
    one = submission()

    async def handler(ctx: Any, _payload: object) -> None:
        started[ctx.task_id] = time.perf_counter()

    def send() -> None:
        began = time.perf_counter()
        task = submit(tenants[0], one).id
        ring()
        sent[task] = began

    async with engine_running(handler):
        await in_thread(send)()
        await until(lambda: len(started) == 1)
        count = per_s * seconds
        for n in range(count):
            await asyncio.gather(in_thread(send)(), asyncio.sleep(1 / per_s))
            progress("latency", n + 1, count)
        await until(lambda: len(started) == count + 1)
    times = sorted(1e3 * (started[task] - sent[task]) for task in sent)[: count + 1]
    settings = {"per_s": per_s, "seconds": seconds}
    return [
        Reading("latency_p50", quantile(times, 0.50), "ms", settings),
        Reading("latency_p99", quantile(times, 0.99), "ms", settings),
    ]


async def io(*, tasks: int = 2_000, slots: int = 200, sleep_s: float = 0.2) -> list[Reading]:
    """Share of the ideal rate (slots ÷ time) for handlers that wait."""
    tenants = await in_thread(fresh_world)(slots=slots)
    await in_thread(fill)(tenants, tasks, what="fill")
    done = 0
    began = 0.0

    async def handler(_ctx: object, _payload: object) -> None:
        nonlocal done, began
        began = began or time.perf_counter()
        await asyncio.sleep(sleep_s)
        done += 1

    async with engine_running(handler):
        await until(lambda: done >= tasks)
        took_s = time.perf_counter() - began
    settings = {"tasks": tasks, "slots": slots, "sleep_s": sleep_s}
    return [
        Reading("io", tasks / took_s, "tasks/s", settings),
        Reading("io_of_ideal", tasks / took_s / (slots / sleep_s), "ratio", settings),
    ]


async def listening(*, tasks: int = 20_000, rounds: int = 3) -> list[Reading]:
    """Drain rate while every transition is told to a listener, against that while nobody listens; the two in turn."""
    quiet, told = [], []
    for _ in range(rounds):
        quiet.append(await _drain_rate(tasks=tasks, slots=100, tenants=1, waiting=0))
        told.append(await _drain_rate(tasks=tasks, slots=100, tenants=1, waiting=0, listened=True))
    settings = {"tasks": tasks, "rounds": rounds}
    return [
        Reading("listening_nobody", max(quiet), "tasks/s", settings),
        Reading("listening_somebody", max(told), "tasks/s", settings),
        Reading("listening_ratio", max(told) / max(quiet), "ratio", settings),
    ]


async def backlog(*, tasks: int = 20_000, waiting: int = 1_000_000) -> list[Reading]:
    """Drain rate with a long queue behind, against a short one."""
    short = await _drain_rate(tasks=tasks, slots=100, tenants=1, waiting=1_000)
    long = await _drain_rate(tasks=tasks, slots=100, tenants=1, waiting=waiting)
    settings = {"tasks": tasks, "waiting": waiting}
    return [
        Reading("backlog_short", short, "tasks/s", {"tasks": tasks, "waiting": 1_000}),
        Reading("backlog_long", long, "tasks/s", settings),
        Reading("backlog_ratio", long / short, "ratio", settings),
    ]


async def many_tenants(*, tasks: int = 20_000, tenants: int = 1_000, rounds: int = 2) -> list[Reading]:
    """Drain rate of many active tenants against that of one, everything else equal: in turns, the best of each."""
    one, many = [], []
    for _ in range(rounds):
        one.append(await _drain_rate(tasks=tasks, slots=100, tenants=1, waiting=0))
        many.append(await _drain_rate(tasks=tasks, slots=100, tenants=tenants, waiting=0))
    settings = {"tasks": tasks, "rounds": rounds}
    return [
        Reading("tenants_one", max(one), "tasks/s", settings | {"tenants": 1}),
        Reading("tenants_many", max(many), "tasks/s", settings | {"tenants": tenants}),
        Reading("tenants_ratio", max(many) / max(one), "ratio", settings | {"tenants": tenants}),
    ]


async def money(*, tasks: int = 10_000, slots: int = 100, tenants: int = 10, rounds: int = 3) -> list[Reading]:
    """Drain rate where every start reserves on a budget and every end is charged to it, against one that costs nothing.

    In turns, the best of each. Several tenants, because all starts of one meet in one row.
    """
    free, priced = [], []
    for _ in range(rounds):
        free.append(await _drain_rate(tasks=tasks, slots=slots, tenants=tenants, waiting=0))
        priced.append(await _drain_rate(tasks=tasks, slots=slots, tenants=tenants, waiting=0, priced=True))
    settings = {"tasks": tasks, "slots": slots, "tenants": tenants, "rounds": rounds}
    return [
        Reading("money_free", max(free), "tasks/s", settings),
        Reading("money_priced", max(priced), "tasks/s", settings),
        Reading("money_ratio", max(priced) / max(free), "ratio", settings),
    ]


async def planning(
    *, waiting: int = 50_000, tenants: int = 1_000, starts: int = 1_000, at_once: int = 10
) -> list[Reading]:
    """Cost of a start behind an exhausted limit: few tasks of one tenant against many of many.

    Each dispatch finds the limit with enough for so many starts `at_once`: with 1, it bears the fixed cost of a plan.
    `again` is the same plan repeated at once: what planning costs by itself, without a wait for the database before it.
    """
    few = await in_thread(_planning_cost)(waiting=starts + 50, tenants=1, starts=starts, at_once=at_once)
    many = await in_thread(_planning_cost)(waiting=waiting, tenants=tenants, starts=starts, at_once=at_once)
    readings = []
    for name, cost, settings in (
        ("few", few, {"waiting": starts + 50, "tenants": 1, "at_once": at_once}),
        ("many", many, {"waiting": waiting, "tenants": tenants, "at_once": at_once}),
    ):
        readings += [
            Reading(f"planning_{name}", cost.plan_us, "us/start", settings),
            Reading(f"planning_{name}_again", cost.again_us, "us/start", settings),
            Reading(f"dispatch_{name}", cost.dispatch_us, "us/start", settings),
        ]
    ratio = many.dispatch_us / few.dispatch_us
    return [*readings, Reading("dispatch_ratio", ratio, "ratio", {"starts": starts, "at_once": at_once})]


@dataclass(frozen=True, slots=True)
class _Cost:
    """Microseconds of a start: in the planner, in the same plan made again at once, and in its whole transaction."""

    plan_us: float
    again_us: float
    dispatch_us: float


class _TimedPlanner:
    """Makes a plan, and then the same ones again: those do not come to processor caches that went cold in a wait."""

    def __init__(self) -> None:
        self.first_s: list[float] = []
        self.again_s: list[float] = []
        self.besides_s = 0.0

    def __call__(self, snapshot: Snapshot, *, starts_max: int) -> Plan:
        """The plan, timed once as it comes and by the quickest of a few repetitions."""
        plan, took_s = self._timed(snapshot, starts_max)
        began = time.perf_counter()
        self.first_s.append(took_s)
        self.again_s.append(min(self._timed(snapshot, starts_max)[1] for _ in range(REPEATED)))
        self.besides_s = time.perf_counter() - began
        return plan

    @staticmethod
    def _timed(snapshot: Snapshot, starts_max: int) -> tuple[Plan, float]:
        began = time.perf_counter()
        plan = make_plan(snapshot, starts_max=starts_max)
        return plan, time.perf_counter() - began


def _planning_cost(*, waiting: int, tenants: int, starts: int, at_once: int) -> _Cost:
    who = fresh_world(slots=10 * starts, tenants=tenants)
    me = WorkerId(str(uuid4()))
    fill(who, waiting, what="fill")
    store.settle_down()
    overview.fold_counts()
    settle_in()
    took_s: list[float] = []
    book, planner = LaneBook(), _TimedPlanner()
    for n in range(starts // at_once):
        heartbeat.register(me, name="bench", kind="engine", slots={pool_id(): 10 * starts})
        store.leave_in_bucket(LIMIT, float(at_once))
        began = time.perf_counter()
        done = dispatch(me=me, book=book, planner=planner)
        took_s.append(time.perf_counter() - began - planner.besides_s)
        assert len(done.leased) == at_once, f"dispatch {n} started {len(done.leased)} tasks"  # noqa: S101 - the scenario's own world
    first, again, whole = (1e6 * quantile(times, 0.5) / at_once for times in (planner.first_s, planner.again_s, took_s))
    return _Cost(first, again, whole)


SCENARIOS: Final[dict[str, Callable[..., Awaitable[list[Reading]]]]] = {
    "enqueue": enqueue,
    "drain": drain,
    "latency": latency,
    "io": io,
    "listening": listening,
    "backlog": backlog,
    "tenants": many_tenants,
    "money": money,
    "planning": planning,
    "runs": runs,
    "forecast": forecast,
    "workers": workers,
    "console": console,
    "operations": operations,
}

BY_NAME_ALONE: Final = frozenset({"console", "operations"})
"""Scenarios that take so long, or so much of a disk, that they are run when they are asked for."""
