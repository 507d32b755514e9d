"""Replays work live: a real engine on a database made for it, calling a provider, at a chosen speed.

At 20× everything that takes time takes a twentieth of it: gaps between arrivals, attempts, deadlines; rates are 20
times as high. What does not shrink is the time of the product itself, so its overhead counts 20 times in what is told:
in seconds of the trace. Work is submitted ahead, with the moment at which it comes as its start, so that how fast this
machine submits makes nothing late. Waits are those of the database: from ready to the first start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from asgiref.sync import sync_to_async

from scheduler.engine.doorbell import ring
from scheduler.engine.runner import Engine
from scheduler.errors import CronoqError
from scheduler.policy.admission import Submission
from scheduler.policy.declarations import LimitSettings, PoolSettings, QuotaSettings
from scheduler.policy.figures import quantile
from scheduler.policy.types import ResourceKind, TaskId, TenantId
from scheduler.replay.faults import ReplayRefused
from scheduler.replay.provider import Provider
from scheduler.replay.settings import Counts, LimitModel, Setup, TenantModel
from scheduler.replay.virtual import Fate, Played
from scheduler.replay.world import Work
from scheduler.services.pools import add_pool
from scheduler.services.resources import add_resource
from scheduler.services.submit import submit_each
from scheduler.services.tenants import add_tenant
from scheduler.store import replay as store
from scheduler.store.dispatch import load_now

TICK_S: Final = 0.004
LOOK_EVERY_S: Final = 0.2
STUCK_S: Final = 60.0
"""When nothing has ended for so long after the last submission, the rest will not."""
BEGINS_IN_S: Final = 5.0
"""How far submission is ahead when the first work comes."""
AHEAD_MAX: Final = 20_000
"""Most work that lies in the database before its time."""
LATE_S: Final = 0.05
"""A machine that keeps up is never later than this."""
_TOO_FAST: Final = (
    "The machine did not keep up: {:.0f} s of the trace are its own, and waits behind them are longer than the limits"
    " make them. Take a lower --speed, or less traffic."
)
BATCH_MAX: Final = 200
ACTOR: Final = "replay"

in_thread = sync_to_async


def prepare_database() -> None:
    """Make this process's own database, which is dropped at the end, one that waits for no disk."""
    store.forgo_disk()


async def play_live(works: tuple[Work, ...], setup: Setup, *, speed: float, provider: Provider) -> Played:
    """Submit the work as it came and see what becomes of it. The database must be empty but migrated."""
    tenants = await in_thread(_lay)(works, setup, speed, provider)
    async with _engine_running() as engine:
        sent = await _submit_all(works, tenants, speed, provider)
        sent.overdue_s = await _until_done(engine)
    found = {row.task: row for row in await in_thread(store.load_attempted)()}
    fates = [Fate(work.request.at_s) for work in works]
    for task, place in sent.places.items():
        row, arrived_s = found.get(task), works[place].request.at_s
        if row is not None:
            started_s = arrived_s + (row.started_at - row.ready_at) * speed
            ended_s = started_s + (row.finished_at - row.started_at) * speed
            fates[place] = Fate(arrived_s, started_s, ended_s, row.succeeded, row.attempts)
    return Played(setup, works, tuple(fates), f"live at {speed:g}×", sent.notes(fates, speed))


@dataclass(slots=True)
class _Sent:
    """What was submitted: the place of each task's work, and how late it was, in seconds of the clock.

    `overdue_s`: at each of many looks, for how long work had been due that no plan had seen.
    """

    places: dict[TaskId, int] = field(default_factory=dict)
    lags_s: list[float] = field(default_factory=list)
    overdue_s: list[float] = field(default_factory=list)

    def notes(self, fates: list[Fate], speed: float) -> tuple[str, ...]:
        late_s = max(quantile(each, 0.95) if each else 0.0 for each in (self.lags_s, self.overdue_s))
        again = sum(fate.attempts - 1 for fate in fates)
        return (
            f"95 % of requests came at most {1e3 * late_s:.0f} ms of the clock late; {again:,} attempts were retries.",
            *said_if_late(late_s, speed=speed),
        )


def said_if_late(late_s: float, *, speed: float) -> tuple[str, ...]:
    """What to say where requests came so many seconds of the clock late."""
    return () if late_s <= LATE_S else (_TOO_FAST.format(late_s * speed),)


def _lay(works: tuple[Work, ...], setup: Setup, speed: float, provider: Provider) -> dict[str, TenantId]:
    """Declare limits, pools and tenants; returns the tenants' ids."""
    for name, limit in setup.limits.items():
        add_resource(name, *_limit(limit, speed), actor=ACTOR)
    for name, pool in setup.pools.items():
        needs = setup.needs(name)
        config: dict[str, object] = {"base_url": provider.base_url, "model": provider.model}
        found = {counts: need for need in reversed(needs) for counts in (setup.limits[need].counts,)}
        config |= {"quota_resource": found[Counts.REQUESTS]} if Counts.REQUESTS in found else {}
        config |= {"tokens": {found[Counts.TOKENS]: {}}} if Counts.TOKENS in found else {}
        # It is about limits: what the provider is paid is between it and whoever names its key.
        config |= {"ceiling_input_usd_per_mtok": "0", "ceiling_output_usd_per_mtok": "0"}
        config |= {} if provider.api_key_env is None else {"api_key_env": provider.api_key_env}
        settings = PoolSettings(config=config, slots=pool.slots, slots_max=pool.slots)
        add_pool(name, "llm", settings, actor=ACTOR)
    return {
        slug: _add_tenant(slug, setup.tenants.get(slug, TenantModel()), speed)
        for slug in dict.fromkeys(work.tenant for work in works)
    }


def _add_tenant(slug: str, tenant: TenantModel, speed: float) -> TenantId:
    quota = QuotaSettings(
        start_rate=None if tenant.start_rate is None else tenant.start_rate * speed,
        start_burst=None if tenant.start_rate is None else tenant.burst,
        max_in_flight=tenant.max_in_flight,
    )
    return TenantId(add_tenant(slug, weight=tenant.weight, quota=quota, actor=ACTOR).id)


def _limit(limit: LimitModel, speed: float) -> tuple[ResourceKind, LimitSettings]:
    if limit.counts is Counts.CONCURRENCY:
        return ResourceKind.SEMAPHORE, LimitSettings(permits=limit.permits, margin=0.0)
    rate = limit.per_minute / 60.0 * speed
    ceilings = {p.label: part for p, part in limit.ceilings.items()} or None
    return ResourceKind.TOKEN_BUCKET, LimitSettings(
        rate=rate, burst=limit.burst, margin=limit.margin, ceilings=ceilings
    )


@asynccontextmanager
async def _engine_running() -> AsyncIterator[Engine]:
    """An engine that leads and serves, until the block ends."""
    engine, stop = Engine(), asyncio.Event()
    running = asyncio.create_task(engine.run(stop))
    try:
        while not (engine.leading and engine.pools.offers()):
            if running.done():
                running.result()
            await asyncio.sleep(TICK_S)
        yield engine
    finally:
        stop.set()
        await running


async def _submit_all(
    works: tuple[Work, ...], tenants: Mapping[str, TenantId], speed: float, provider: Provider
) -> _Sent:
    """Submit each piece of work before its time comes; those that no limit ever admits are left out."""
    sent = _Sent()
    rest = [(place, work) for place, work in enumerate(works) if work.refused is None]
    loop = asyncio.get_running_loop()
    # The first second of the trace: by the clock that makes due work ready, and by ours.
    begins_at, began = await in_thread(load_now)() + BEGINS_IN_S, loop.time() + BEGINS_IN_S
    for n in range(0, len(rest), BATCH_MAX):
        batch = rest[n : n + BATCH_MAX]
        if n >= AHEAD_MAX:
            come_s = rest[n - AHEAD_MAX][1].request.at_s / speed
            await asyncio.sleep(max(0.0, began + come_s - loop.time()))
        items = [(tenants[work.tenant], _submission(work, begins_at, speed, provider)) for _, work in batch]
        answers = await in_thread(submit_each)(items)
        now = loop.time() - began
        for (place, work), answer in zip(batch, answers, strict=True):
            if isinstance(answer, CronoqError):
                raise ReplayRefused("The live replay ended: a request was not taken in.", [answer.detail])
            sent.places[answer.id] = place
            sent.lags_s.append(max(0.0, now - work.request.at_s / speed))
        ring()
    return sent


def _submission(work: Work, begins_at: float, speed: float, provider: Provider) -> Submission:
    latest_s = work.latest_start_s
    return Submission(
        payload=provider.payload(work, speed=speed),
        pool=work.pool,
        priority=work.priority,
        start_at=begins_at + work.request.at_s / speed,
        deadline_at=None if latest_s is None else begins_at + (latest_s + work.expected_s) / speed,
        duration_hint_s=work.expected_s / speed,
        resources={name: amount for name, amount in work.amounts.items() if amount > 0.0},
    )


async def _until_done(engine: Engine) -> list[float]:
    """Wait for all tasks to end, or for nothing to happen any more; how late plans were, at each look."""
    loop = asyncio.get_running_loop()
    settled, since = -1, loop.time()
    overdue_s: list[float] = []
    while (left := await in_thread(store.load_open)()).number:
        overdue_s.append(left.overdue_s)
        if engine.settled != settled or left.scheduled:
            settled, since = engine.settled, loop.time()
        elif loop.time() - since > STUCK_S:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return overdue_s
