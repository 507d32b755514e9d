"""The product inside the caller's process: an engine on the caller's loop, and the services behind a scheduler's calls.

Decides nothing about work; it runs what decides. Only to be imported once Django is set up (`home`).

The engine runs on the caller's loop, as one of its tasks, so that async executors run where the caller's other tasks
do and are cancelled as those are. Whatever has to happen in time even while user code holds the loop (planning,
settling, renewing leases) has threads and connections of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

from django.db import DatabaseError

from scheduler.engine.db_thread import DbThread
from scheduler.engine.doorbell import DOORBELL, Bell, ring
from scheduler.engine.executors.python import Handler
from scheduler.engine.group_commit import GROUP_COMMIT
from scheduler.engine.runner import Engine
from scheduler.engine.settings import EngineSettings
from scheduler.errors import Conflict, CronoqError, NotFound, Unavailable
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.policy.types import TaskId, TenantId
from scheduler.reads.figures import PoolFigures, pool_figures
from scheduler.reads.tasks import states_of
from scheduler.sdk.declarations import Codec, Pool, Resource, Task
from scheduler.sdk.embedded.declare import ACTOR, SOURCE, declare, set_slots, tenant_id
from scheduler.sdk.embedded.handlers import handler_of
from scheduler.sdk.embedded.home import HOME
from scheduler.sdk.embedded.journal import Journal
from scheduler.sdk.embedded.submissions import submission_of, submit_error
from scheduler.sdk.embedded.watch import Watch
from scheduler.sdk.errors import SchedulerError, SubmitError
from scheduler.sdk.events import EventStream, OnLag
from scheduler.sdk.handle import End
from scheduler.sdk.snapshot import PoolSnapshot
from scheduler.services.cancel import cancel
from scheduler.services.changes import Author
from scheduler.services.schedules import (
    Declared,
    add_schedule,
    described,
    edit_schedule,
    find_schedule,
    remove_schedule,
)
from scheduler.services.submit import Accepted, submit_batch

logger = logging.getLogger(__name__)

TENANT: Final = "default"
HEAL_EVERY_S: Final = 1.0
ROOM_LOOK_S: Final = 0.25
"""How often those who wait for room in a full pool try again, if no attempt ends meanwhile."""
SCHEDULE_TRIES: Final = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A schedule as a program declares it."""

    name: str
    cron: str
    tz: str
    overlap: str
    catch_up: str
    task: Task


@dataclass(frozen=True, slots=True)
class _Group:
    """Slots with labels: an engine of their own, and what it offers."""

    engine: Engine
    offers: dict[str, int]


class Backend:
    """One scheduler's engine and its calls. To be used from the loop that opened it."""

    def __init__(self, pools: Sequence[Pool], codec: Codec, *, event_capacity: int, transitions: bool) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self._codec = codec
        self._loop = asyncio.get_running_loop()
        self._db = DbThread("sdk")
        self._watch = Watch(codec)
        own = frozenset(pool.name for pool in pools if pool.executor is not None)
        self._journal = Journal(capacity=event_capacity, transitions=transitions, own_pools=own)
        self._tenants: dict[str, TenantId] = {}
        self._stop = asyncio.Event()
        self._room = asyncio.Event()
        self._gates: dict[str, asyncio.Lock] = {}
        self._off = DOORBELL.on(Bell.SETTLED, self._on_settled)
        self._tasks: list[asyncio.Task[None]] = []
        self._engine: Engine | None = None
        self._handlers: dict[str, Handler] = {}
        self._groups: dict[tuple[str, tuple[tuple[str, str], ...]], _Group] = {}

    async def open(self, resources: Sequence[Resource], *, grace_s: float) -> None:
        """Declare what the program declares, and start the engine. Raises SchedulerError."""
        await self._call(declare, list(self._pools.values()), list(resources))
        self._handlers = {
            name: handler_of(pool.executor, self._codec, self._loop, self._journal.started)
            for name, pool in self._pools.items()
            if pool.executor is not None
        }
        self._engine = Engine(
            handlers=self._handlers, settings=replace(EngineSettings.from_config(), grace_s=grace_s), only_handlers=True
        )
        engine = self._loop.create_task(self._engine.run(self._stop), name="cronoq engine")
        engine.add_done_callback(_say_if_broken)
        self._tasks = [engine, self._loop.create_task(self._heal(), name="cronoq database")]

    async def close(self, grace_s: float | None = None) -> None:
        """Let what runs end within the grace, hand back the rest, and give everything up."""
        engines = [*([self._engine] if self._engine else []), *(group.engine for group in self._groups.values())]
        for engine in engines:
            if grace_s is not None:
                engine.settings = replace(engine.settings, grace_s=grace_s)
        self._stop.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._off()
        await self._journal.close()
        await self._watch.close()
        self._db.close()
        await asyncio.to_thread(GROUP_COMMIT.let_go)

    # Tasks

    async def submit(self, task: Task) -> Accepted:
        """Store a task; with `overflow="wait"` once there is room. Raises SubmitError."""
        submission = submission_of(task, self._codec)
        tenant = await self._tenant(task.tenant)
        accepted = await self._when_room(
            [task.pool], lambda: asyncio.wrap_future(GROUP_COMMIT.join(tenant, submission)), "The task"
        )
        self._journal.submitted(accepted.id, accepted.state, pool=task.pool, kind=task.kind, key=task.key)
        return accepted

    async def submit_batch(self, tasks: Sequence[Task], *, group: str | None, join: str | None) -> list[Accepted]:
        """Store all of them or none. Raises SubmitError."""
        if not tasks:
            return []
        submissions = [submission_of(task, self._codec, group=group, join=join) for task in tasks]
        tenants = {task.tenant for task in tasks}
        if len(tenants) > 1:
            raise SubmitError("The tasks of a batch belong to one tenant; submit one batch for each.")
        tenant = await self._tenant(tenants.pop())
        pools = [task.pool for task in tasks]
        accepted = await self._when_room(pools, lambda: self._db.call(submit_batch, tenant, submissions), "The batch")
        for task, each in zip(tasks, accepted, strict=True):
            self._journal.submitted(each.id, each.state, pool=task.pool, kind=task.kind, key=task.key)
        return accepted

    async def end_of(self, task: int) -> End:
        """How the task ends, once it has."""
        return await self._watch.end_of(TaskId(task))

    def known_end(self, task: int) -> End | None:
        """How it ended as far as that was seen."""
        return self._watch.known_end(TaskId(task))

    async def cancel(self, task: int) -> bool:
        """Cancel it; False when it had ended. Raises SchedulerError when there is no such task."""
        try:
            await self._call(cancel, TaskId(task), None, actor=ACTOR, source=SOURCE)
        except SchedulerError as error:
            if isinstance(error.__cause__, Conflict):
                return False
            raise
        ring()
        DOORBELL.ring(Bell.SETTLED)
        return True

    async def status(self, task: int) -> str | None:
        """Where it stands, None when it is not kept."""
        state = (await self._call(states_of, [TaskId(task)])).get(TaskId(task))
        return None if state is None else state.value

    def events(self, on_lag: OnLag) -> EventStream:
        """A reader of what happens to the tasks submitted or run here, from now on."""
        return self._journal.open(on_lag)

    # Pools and schedules

    async def snapshot(self, pool: str) -> PoolSnapshot:
        """How a pool does. Raises SchedulerError when there is none of that name."""
        found = await self._call(pool_figures, pool)
        scale = self._pools[pool].autoscale if pool in self._pools else None
        return _snapshot(found, 0.0 if scale is None else scale.cost_per_worker_second)

    async def set_capacity(self, pool: str, slots: int) -> None:
        """Give a pool so many slots now. Raises SchedulerError."""
        await self._call(set_slots, pool, slots)
        ring()

    async def set_group_capacity(self, pool: str, labels: Mapping[str, str], capacity: int) -> None:
        """Offer a pool so many slots with these labels, from this process. Raises SchedulerError."""
        if self._engine is None or pool not in self._handlers:
            raise SchedulerError(f"This scheduler has no executor for a pool {pool!r}.")
        if capacity < 0:
            raise SchedulerError(f"A capacity is at least 0, not {capacity}.")
        key = (pool, tuple(sorted(labels.items())))
        group = self._groups.get(key)
        if group is not None:
            group.offers[pool] = capacity
        elif capacity:
            self._groups[key] = self._group(self._engine.settings, pool, labels, capacity)

    def _group(self, settings: EngineSettings, pool: str, labels: Mapping[str, str], capacity: int) -> _Group:
        offers = {pool: capacity}
        handlers = {pool: self._handlers[pool]}
        try:
            engine = Engine(handlers=handlers, settings=settings, only_handlers=True, labels=labels, offers=offers)
        except CronoqError as error:
            raise SchedulerError(error.detail) from error
        task = self._loop.create_task(engine.run(self._stop), name=f"cronoq engine of {pool} {dict(labels)}")
        task.add_done_callback(_say_if_broken)
        self._tasks.append(task)
        return _Group(engine, offers)

    async def add_recurring(self, recurring: Recurring) -> None:
        """Declare a schedule, or change the one of that name. Raises SchedulerError."""
        submission = submission_of(recurring.task, self._codec)
        tenant = await self._tenant(recurring.task.tenant)
        try:
            overlap, catch_up = Overlap(recurring.overlap), CatchUp(recurring.catch_up)
        except ValueError as error:
            raise SchedulerError(f"{error}; there are {', '.join(Overlap)}, and {', '.join(CatchUp)}.") from None
        await self._call(
            lambda: _add_or_edit(
                tenant,
                recurring.name,
                Declared(recurring.cron, recurring.tz, described(submission), overlap, catch_up),
            )
        )

    async def remove_recurring(self, name: str, tenant: str | None) -> bool:
        """Remove a schedule; False when there is none of that name. Its submitted tasks stay."""
        try:
            await self._call(remove_schedule, await self._tenant(tenant), name, _author("removed by a program"))
        except SchedulerError as error:
            if isinstance(error.__cause__, NotFound):
                return False
            raise
        return True

    # Within

    async def _call(self, service: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a service on this scheduler's thread, its errors in the words of the SDK."""
        try:
            return await self._db.call(service, *args, **kwargs)
        except CronoqError as error:
            raise SchedulerError(error.detail) from error
        except DatabaseError as error:
            raise SchedulerError(f"The database does not answer: {error}") from error

    async def _tenant(self, slug: str | None) -> TenantId:
        name = slug or TENANT
        known = self._tenants.get(name)
        if known is None:
            known = self._tenants[name] = await self._call(tenant_id, name)
        return known

    async def _when_room(self, pools: Sequence[str], store: Callable[[], Awaitable[T]], what: str) -> T:
        """Store it, now or when there is room; those who wait for a pool take turns in the order in which they came."""
        try:
            if not all(pool in self._pools and self._pools[pool].overflow == "wait" for pool in pools):
                return await self._stored(store, what)
            gate = self._gates.setdefault(pools[0], asyncio.Lock())
            if not gate.locked():
                with suppress(Unavailable):
                    return await self._stored(store, what)
            async with gate:
                while True:
                    self._room.clear()
                    with suppress(Unavailable):
                        return await self._stored(store, what)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(ROOM_LOOK_S):
                            await self._room.wait()
        except CronoqError as error:
            raise submit_error(error) from error

    async def _stored(self, store: Callable[[], Awaitable[T]], what: str) -> T:
        try:
            done = await store()
        except DatabaseError as error:
            detail = f"{what} may not have been stored, the database does not answer: {error}"
            raise SubmitError(detail, "unavailable") from error
        ring()
        return done

    async def _heal(self) -> None:
        """Bring the embedded server back if it dies."""
        while not self._stop.is_set():
            try:
                await asyncio.to_thread(HOME.heal)
            except Exception:
                logger.exception("the embedded database does not come back; trying again")
            with suppress(TimeoutError):
                async with asyncio.timeout(HEAL_EVERY_S):
                    await self._stop.wait()

    def _on_settled(self) -> None:
        # Called from the doorbell's threads; a loop that has closed waits for nothing any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._room.set)


def _snapshot(found: PoolFigures, cost_per_worker_second: float) -> PoolSnapshot:
    same = {f.name for f in fields(PoolSnapshot)} & {f.name for f in fields(PoolFigures)}
    return PoolSnapshot(
        **{name: getattr(found, name) for name in same},
        pending=sum(found.pending_by_class.values()),
        window=found.window_s,
        wait_mean=found.wait.mean,
        wait_p50=found.wait.p50,
        wait_p90=found.wait.p90,
        wait_p99=found.wait.p99,
        run_p50=found.run.p50,
        run_p99=found.run.p99,
        worker_seconds=found.worker_s,
        cost=found.worker_s * cost_per_worker_second,
    )


def _say_if_broken(engine: asyncio.Task[None]) -> None:
    if not engine.cancelled() and engine.exception() is not None:
        logger.error("the engine broke down; no task starts here any more", exc_info=engine.exception())


def _author(reason: str) -> Author:
    return Author(ACTOR, SOURCE, reason)


def _add_or_edit(tenant: TenantId, name: str, declared: Declared) -> None:
    for _ in range(SCHEDULE_TRIES):
        with suppress(Conflict):
            try:
                row = find_schedule(tenant, name)
            except NotFound:
                add_schedule(tenant, name, declared, _author("declared by a program"))
                return
            changes: Mapping[str, Any] = {
                field: getattr(declared, field)
                for field in ("cron", "time_zone", "task", "overlap", "catch_up")
                if getattr(row.declared, field) != getattr(declared, field)
            }
            if changes:
                edit_schedule(tenant, name, row.version, changes, _author("declared by a program"))
            return
    raise Unavailable(f"The schedule {name!r} is being changed by others; try again.", code="schedule_moves")
