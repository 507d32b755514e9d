"""What the scenarios share: an empty database of their own, a pool with its limits, and an engine to run them on."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from scheduler.engine.executors.python import Handler
from scheduler.engine.runner import Engine
from scheduler.engine.settings import EngineSettings
from scheduler.interpreter import settle_in
from scheduler.models import Pool, Resource, Tenant
from scheduler.policy.admission import Submission
from scheduler.policy.types import PoolId, PriorityClass, ResourceKind, TenantId
from scheduler.services.submit import Accepted, submit_each
from scheduler.store import bench as store
from scheduler.store import resources as resource_store

POOL: Final = "bench"
LIMIT: Final = "bench-rate"
PAYLOAD: Final = '{"text": "' + "x" * 186 + '"}'
"""200 bytes of JSON, as the figures of other queues were taken with."""
BATCH: Final = 1_000
WIDE: Final = 1e9


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure of one scenario."""

    scenario: str
    value: float
    unit: str
    settings: Mapping[str, object]


def submission(*, limited: bool = True, priority: PriorityClass = PriorityClass.NORMAL) -> Submission:
    """A no-op task, drawing on a bucket and a semaphore unless told otherwise."""
    return Submission(
        payload=PAYLOAD,
        pool=POOL,
        priority=priority,
        resources={LIMIT: 1.0, "bench-permits": 1.0} if limited else {},
    )


def fresh_world(*, slots: int, tenants: int = 1, priced: bool = False) -> list[TenantId]:
    """Empty the tables and lay one pool, two limits that are never reached, and tenants.

    `priced`: a second of a worker costs money, and each tenant has a budget that is never used up.
    """
    store.empty_tables()
    Pool.objects.all().delete()
    price = {"worker_second_nano": 1_000, "timeout_s": 60.0} if priced else {}
    Pool.objects.create(name=POOL, executor="python", config={}, slots=slots, slots_max=slots, **price)
    Resource.objects.all().delete()
    resource_store.add(LIMIT, ResourceKind.TOKEN_BUCKET, rate=WIDE, burst=WIDE, permits=0, margin=0.02)
    resource_store.add("bench-permits", ResourceKind.SEMAPHORE, rate=0, burst=0, permits=1_000_000, margin=0)
    found = [
        TenantId(Tenant.objects.get_or_create(slug=f"bench-{n}", defaults={"name": "bench"})[0].pk)
        for n in range(tenants)
    ]
    Tenant.objects.update(monthly_budget_nano=10**15 if priced else None)
    return found


def fill(tenants: list[TenantId], count: int, *, what: str, limited: bool = True) -> float:
    """Submit `count` tasks in batches, the tenants in turn; returns the seconds it took."""
    one = submission(limited=limited)
    began = time.perf_counter()
    for done in range(0, count, BATCH):
        size = min(BATCH, count - done)
        refused = [
            a
            for a in submit_each([(tenants[(done + n) % len(tenants)], one) for n in range(size)])
            if not isinstance(a, Accepted)
        ]
        assert not refused, refused[0]  # noqa: S101 - the scenario's own world
        progress(what, done + size, count)
    return time.perf_counter() - began


def pool_id() -> PoolId:
    """The pool of the world."""
    return PoolId(Pool.objects.get(name=POOL).pk)


@asynccontextmanager
async def engine_running(handler: Handler, *, settings: EngineSettings | None = None) -> AsyncIterator[Engine]:
    """An engine on this loop, until the block ends."""
    engine = Engine(handlers={POOL: handler}, settings=settings)
    settle_in()
    stop = asyncio.Event()
    running = asyncio.create_task(engine.run(stop))
    try:
        yield engine
    finally:
        stop.set()
        await running


async def until(ready: Callable[[], bool], *, timeout_s: float = 600.0) -> None:
    """Wait for a condition of this process, looked at every few milliseconds. Raises TimeoutError."""
    async with asyncio.timeout(timeout_s):
        while not ready():  # noqa: ASYNC110 - looking must cost the engine under test nothing
            await asyncio.sleep(0.002)


def progress(what: str, done: int, of: int) -> None:
    """One line that rewrites itself on a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done >= of else "\r"
        print(f"{what}: {done:,} of {of:,}", end=end, file=sys.stderr, flush=True)  # noqa: T201 - progress
