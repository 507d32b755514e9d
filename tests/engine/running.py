"""An engine in a thread of the test process, started and stopped as a program would."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from scheduler.engine.executors.python import Handler
from scheduler.engine.runner import Engine
from scheduler.engine.settings import EngineSettings
from scheduler.models import Attempt, Lease, Task, TaskResult, Worker
from scheduler.policy.types import TaskId
from tests.support.waiting import wait_until

QUICK = EngineSettings(poll_s=0.05, leader_ttl_s=1.0, snapshot_s=0.2, grace_s=0.5)
JOIN_TIMEOUT_S = 30.0


class RunningEngine:
    """One engine with its loop and thread."""

    def __init__(self, handlers: Mapping[str, Handler], settings: EngineSettings) -> None:
        self.engine = Engine(handlers=handlers, settings=settings)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.error: BaseException | None = None
        self._stop: asyncio.Event | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._main, name="engine under test", daemon=True)

    def start(self) -> None:
        """Start it; it may take a while to be of use."""
        self._thread.start()
        assert self._begun.wait(JOIN_TIMEOUT_S)

    def tell_to_stop(self) -> None:
        """What the first signal does."""
        assert self.loop is not None
        assert self._stop is not None
        self.loop.call_soon_threadsafe(self._stop.set)

    def join(self) -> None:
        """Wait for its end, which must be a clean one."""
        self._thread.join(JOIN_TIMEOUT_S)
        assert not self._thread.is_alive(), "the engine does not stop"
        assert self.error is None, self.error

    def stop(self) -> None:
        """Stop it and wait. Callable more than once."""
        if self._thread.is_alive():
            # It may just have ended by itself.
            with suppress(RuntimeError):
                self.tell_to_stop()
        self.join()

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:  # noqa: BLE001  # handed to the test
            self.error = error

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._begun.set()
        await self.engine.run(self._stop)


@contextmanager
def engine(
    handlers: Mapping[str, Handler] | None = None, *, ready: bool = True, **settings: Any
) -> Iterator[RunningEngine]:
    """Run an engine with quick timings; `ready` waits until it is registered."""
    running = RunningEngine(handlers or {}, replace(QUICK, **settings))
    running.start()
    try:
        if ready:
            wait_until(
                lambda: Worker.objects.filter(pk=running.engine.id).exists(), what="the engine to register itself"
            )
        yield running
    finally:
        running.stop()


def wait_for_state(task: TaskId, state: str, *, timeout_s: float = 60.0) -> None:
    """Wait until a task is in a state; on failure says where it is and how its attempts went."""
    try:
        wait_until(lambda: Task.objects.get(pk=task).state == state, timeout_s=timeout_s)
    except AssertionError:
        raise AssertionError(f"task {task} is not {state}: {describe(task)}") from None


def describe(task: TaskId) -> str:
    """What the database says about a task."""
    row = Task.objects.get(pk=task)
    leases = list(Lease.objects.filter(task_id=task).values_list("lease_id", "attempt", "picked_up"))
    return f"state {row.state}, attempts {row.attempts}, leases {leases}, history {attempts_of(task)}"


def attempts_of(task: TaskId) -> list[tuple[int, str, str | None, str | None]]:
    """(number, outcome, class, message) of a task's attempts, oldest first."""
    rows = Attempt.objects.filter(task_id=task).order_by("lease_id")
    return list(rows.values_list("number", "outcome", "failure_class", "message"))


def outcomes_of(task: TaskId) -> list[tuple[int, str]]:
    """(number, outcome) of a task's attempts, oldest first."""
    return [(number, outcome) for number, outcome, _, _ in attempts_of(task)]


def result_of(task: TaskId) -> object:
    """What a task came to."""
    return TaskResult.objects.get(task_id=task).result
