"""What a dispatch costs beside many agent runs: those that wait their turn, and those that their own width holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from asgiref.sync import sync_to_async

from scheduler.bench.world import LIMIT, POOL, Reading, fresh_world, pool_id, progress
from scheduler.policy.admission import Submission
from scheduler.policy.figures import quantile
from scheduler.policy.lanebook import LaneBook
from scheduler.policy.runs import Asked
from scheduler.policy.types import LeasedTask, Outcome, TenantId, WorkerId
from scheduler.services import heartbeat
from scheduler.services.dispatch import Dispatched, dispatch
from scheduler.services.runs import create_run
from scheduler.services.settle import Report, settle
from scheduler.services.submit import submit_each
from scheduler.store import bench as store
from scheduler.store import overview

SIZES: Final = (20, 200, 2_000)
STEPS: Final = 3
TENANTS: Final = 40
LOOKS_MAX: Final = 10_000
FOLD_EVERY: Final = 20
"""Dispatches between two folds of the counts, which the leader makes once a second."""


async def runs(*, dispatches: int = 60, runs: int = SIZES[-1]) -> list[Reading]:
    """Milliseconds of a dispatch of one start beside N runs of three steps each, over 40 tenants.

    `waiting`: a limit has enough for one more start, whose turn it is among all runs. `held`: each run has one step
    running and may have no second; one ends, and its run may start the next.
    """
    readings = []
    sizes = [size for size in SIZES if size <= runs]
    for name, measure in (("waiting", _waiting), ("held", _held)):
        medians = []
        for size in sizes:
            took_ms = await sync_to_async(measure)(size, dispatches)
            settings = {"runs": size, "steps": STEPS, "tenants": TENANTS}
            medians.append(quantile(took_ms, 0.5))
            readings += [
                Reading(f"runs_{name}_p50", medians[-1], "ms/dispatch", settings),
                Reading(f"runs_{name}_p95", quantile(took_ms, 0.95), "ms/dispatch", settings),
            ]
        readings.append(Reading(f"runs_{name}_ratio", medians[-1] / medians[0], "ratio", {"runs": sizes[-1]}))
    return readings


def _world(count: int) -> None:
    tenants = fresh_world(slots=10 * count, tenants=TENANTS)
    for n in range(count):
        tenant = tenants[n % TENANTS]
        run = create_run(tenant, "{}", asked=Asked(max_width=1)).id
        step = Submission(payload="{}", pool=POOL, run=run, resources={LIMIT: 1.0})
        _take(tenant, step)
        progress("runs", n + 1, count)
    store.settle_down()
    overview.fold_counts()


def _take(tenant: TenantId, step: Submission) -> None:
    submit_each([(tenant, step)] * STEPS)


class _Bench:
    """A worker with slots for all, who plans with a book."""

    def __init__(self, slots: int) -> None:
        self.me = WorkerId(str(uuid4()))
        self.slots = slots
        self.book = LaneBook()
        self.took_ms: list[float] = []

    def dispatch(self) -> Dispatched:
        """Plan once, and take the time."""
        heartbeat.register(self.me, name="bench", kind="engine", slots={pool_id(): self.slots})
        began = time.perf_counter()
        done = dispatch(me=self.me, book=self.book)
        self.took_ms.append(1e3 * (time.perf_counter() - began))
        return done

    def start(self) -> list[LeasedTask]:
        """Plan until nothing more starts; what did."""
        leased: list[LeasedTask] = []
        for _ in range(LOOKS_MAX):
            done = self.dispatch()
            leased += done.leased
            if not done.again:
                break
        return leased

    def rounds(self, dispatches: int, before: Callable[[], None]) -> list[float]:
        """The milliseconds of as many dispatches, each after something that lets one task start."""
        self.took_ms.clear()
        took_ms = []
        for n in range(dispatches):
            if n % FOLD_EVERY == 0:
                overview.fold_counts()
            before()
            first = len(self.took_ms)
            started = self.start()
            took_ms.append(sum(self.took_ms[first:]))
            assert len(started) == 1, f"{len(started)} started"  # noqa: S101 - the scenario's own world
        return took_ms


def _waiting(count: int, dispatches: int) -> list[float]:
    _world(count)
    bench = _Bench(10 * count)
    store.leave_in_bucket(LIMIT, 0.0)
    bench.start()
    return bench.rounds(dispatches, lambda: store.leave_in_bucket(LIMIT, 1.0))


def _held(count: int, dispatches: int) -> list[float]:
    _world(count)
    bench = _Bench(10 * count)
    running = bench.start()
    assert len(running) == count, f"{len(running)} of {count} runs have a step"  # noqa: S101 - the scenario's own world

    def end_one() -> None:
        settle([Report(running.pop().lease, Outcome.SUCCEEDED, result="null")])

    return bench.rounds(dispatches, end_one)
