"""The embedded scheduler: cronoq's, with its work in PostgreSQL.

Says what a caller may ask for and hands it on. Nothing of the product is imported before a scheduler starts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack, overload

from scheduler.sdk.declarations import Codec, JsonCodec, Pool, Resource, Task, TaskFields
from scheduler.sdk.errors import SchedulerError
from scheduler.sdk.events import EventStream, OnLag
from scheduler.sdk.handle import TaskHandle
from scheduler.sdk.snapshot import PoolSnapshot

if TYPE_CHECKING:
    from scheduler.sdk.embedded.backend import Backend

Join = Literal["fail_fast", "best_effort"]


class Scheduler:
    """Runs tasks through the pools it is given, in this process, and keeps them in a database.

    Other processes may run a scheduler on the same database: they share pools, limits and work, and each runs tasks of
    the pools that it has executors for. What a killed process was doing is done by another, or when it comes back.

        async with Scheduler([Pool("llm", call_model, max=8)], resources=[Resource.semaphore("gpu", 2)]) as sched:
            handle = await sched.submit("Say hello.", pool="llm", resources={"gpu": 1})
            answer = await handle

    Args:
        pools: what runs tasks.
        resources: limits that tasks may name, shared by all pools.
        emit_transitions: have `events` tell every move of a task, not only its end.
        shutdown_grace: seconds that running attempts have to end at shutdown; then they are handed back, unspent.
        event_capacity: events that a reader may be behind.
        database: a `postgresql://` URL, or the directory of an embedded server; by default what the environment says
            (`DATABASE_URL`, `CRONOQ_DATA_DIR`), which is an embedded server in `.cronoq`.
        codec: turns payloads and results into JSON and back.
    """

    def __init__(
        self,
        pools: Iterable[Pool],
        resources: Iterable[Resource] | None = None,
        emit_transitions: bool = False,  # noqa: FBT001, FBT002 - cronoq's own signature
        *,
        shutdown_grace: float = 5.0,
        event_capacity: int = 1024,
        database: str | os.PathLike[str] | None = None,
        codec: Codec | None = None,
    ) -> None:
        self._pools = list(pools)
        self._resources = list(resources or ())
        self._emit_transitions = emit_transitions
        self._event_capacity = event_capacity
        self._grace_s = shutdown_grace
        self._database = database
        self._codec: Codec = codec or JsonCodec()
        self._backend: Backend | None = None
        names = [pool.name for pool in self._pools]
        if len(set(names)) < len(names):
            raise SchedulerError(f"Two pools have the same name; there are {', '.join(names)}.")

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shut down; tasks that have not ended are kept."""
        await self.shutdown()

    async def start(self) -> None:
        """Bring the database up and its tables up to date, declare pools and resources, and begin to run tasks.

        Raises SchedulerError with what to change.
        """
        if self._backend is not None:
            raise SchedulerError("This scheduler runs already.")
        await asyncio.to_thread(_enter, self._database)
        try:
            backend = await asyncio.to_thread(_backend_class)
            opened = backend(
                self._pools, self._codec, event_capacity=self._event_capacity, transitions=self._emit_transitions
            )
            try:
                await opened.open(self._resources, grace_s=self._grace_s)
            except BaseException:
                await opened.close()
                raise
        except BaseException:
            await asyncio.to_thread(_leave)
            raise
        self._backend = opened

    async def shutdown(self, grace: float | None = None) -> None:
        """Start nothing more, let what runs end within `grace` seconds, hand back the rest. Callable more than once."""
        backend, self._backend = self._backend, None
        if backend is not None:
            await backend.close(grace)
            await asyncio.to_thread(_leave)

    async def submit(self, payload: object, **fields: Unpack[TaskFields]) -> TaskHandle:
        """Store a task; what it may say is told at `Task`. Raises SubmitError.

        Returns when it is stored for good. In a pool with `overflow="wait"` that is once there is room for it.
        """
        accepted = await self._running.submit(Task(payload, **fields))
        return TaskHandle(accepted.id, self._running, key=accepted.key, duplicate=accepted.duplicate)

    async def enqueue(self, payload: object, **fields: Unpack[TaskFields]) -> int:
        """The same for those who only want its id."""
        return (await self.submit(payload, **fields)).id

    async def submit_batch(
        self, tasks: Sequence[Task], *, group: str | None = None, join: Join | None = None
    ) -> list[TaskHandle]:
        """Store all of these tasks or none; they may come after each other by key. At most 1,000.

        `join="fail_fast"`: the first that fails cancels the others. Raises SubmitError.
        """
        backend = self._running
        accepted = await backend.submit_batch(tasks, group=group, join=join)
        return [TaskHandle(each.id, backend, key=each.key, duplicate=each.duplicate) for each in accepted]

    def handle(self, task: int) -> TaskHandle:
        """A handle of a task that was submitted before, in this process or another."""
        return TaskHandle(task, self._running)

    async def cancel(self, task: int | TaskHandle) -> bool:
        """Cancel a task: at once while it waits, by telling the attempt to stop while it runs. False: it had ended."""
        return await self._running.cancel(_id(task))

    async def status(self, task: int | TaskHandle) -> str | None:
        """Where a task stands (`ready`, `running`, `succeeded`, …); None when it is not kept."""
        return await self._running.status(_id(task))

    def events(self, on_lag: OnLag = "skip") -> EventStream:
        """What happens from now on to the tasks that this scheduler submits or runs: `async for event in …`.

        Ends of tasks, or every move with `emit_transitions`. A reader more than `event_capacity` behind loses the
        oldest; `on_lag="raise"` tells it so with EventsLagged.
        """
        return self._running.events(on_lag)

    @overload
    async def snapshot(self, pool: str) -> PoolSnapshot: ...

    @overload
    async def snapshot(self, pool: None = None) -> dict[str, PoolSnapshot]: ...

    async def snapshot(self, pool: str | None = None) -> PoolSnapshot | dict[str, PoolSnapshot]:
        """How a pool does now, and did in the last five minutes; without a name all pools of this scheduler, by name.

        Raises SchedulerError for an unknown one.
        """
        backend = self._running
        if pool is not None:
            return await backend.snapshot(pool)
        return {each.name: await backend.snapshot(each.name) for each in self._pools}

    async def set_capacity(self, pool: str, capacity: int) -> None:
        """Give a pool so many slots, between its `min` and `max`. What runs goes on; more waits, or starts at once."""
        await self._running.set_capacity(pool, capacity)

    async def set_group_capacity(self, pool: str, labels: Mapping[str, str], capacity: int) -> None:
        """Have so many of a pool's slots carry labels: `set_group_capacity("infer", {"gpu": "a100"}, 2)`.

        Tasks that ask for these labels run there, in this process; so may tasks that ask for none. 0 offers nothing.
        """
        await self._running.set_group_capacity(pool, labels, capacity)

    async def add_recurring(
        self,
        name: str,
        cron: str,
        payload: object,
        *,
        tz: str = "UTC",
        overlap: Literal["skip", "allow", "queue", "queue_on_success"] = "skip",
        catch_up: Literal["none", "last", "all"] = "last",
        **fields: Unpack[TaskFields],
    ) -> None:
        """Submit a task at each time that `cron` names in the zone `tz`; a schedule of that name is changed.

        Five fields, or six with seconds first. `overlap`: what happens while the task before has not ended. `catch_up`:
        which occurrences are made up for that nobody was there for. The rest describes the task; its key is followed by
        the time. Raises SchedulerError.
        """
        from scheduler.sdk.embedded.backend import Recurring  # noqa: PLC0415 - the product is there only once it runs

        task = Task(payload, **fields)
        await self._running.add_recurring(
            Recurring(name=name, cron=cron, tz=tz, overlap=overlap, catch_up=catch_up, task=task)
        )

    async def remove_recurring(self, name: str, *, tenant: str | None = None) -> bool:
        """Remove a schedule; False when there is none of that name. Tasks that it submitted stay."""
        return await self._running.remove_recurring(name, tenant)

    @property
    def _running(self) -> Backend:
        if self._backend is None:
            raise SchedulerError("The scheduler does not run; use `async with Scheduler(…)`, or await start().")
        return self._backend


def _id(task: int | TaskHandle) -> int:
    return task.id if isinstance(task, TaskHandle) else task


def _enter(database: str | os.PathLike[str] | None) -> None:
    """In a thread: imports and starts what takes a while."""
    from scheduler.sdk.embedded.home import HOME  # noqa: PLC0415 - Django is imported here and not before

    HOME.enter(database)


def _leave() -> None:
    from scheduler.sdk.embedded.home import HOME  # noqa: PLC0415 - as above

    HOME.leave()


def _backend_class() -> type[Backend]:
    from scheduler.sdk.embedded.backend import Backend  # noqa: PLC0415 - its imports need Django set up

    return Backend
