"""Whatever the snapshot, a plan keeps its promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.policy.plan import make_plan
from scheduler.policy.types import FairCounter, PriorityClass, ResourceId, Snapshot, TaskId, WorkerId
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait

NOW = 1_000.0
K = TypeVar("K")
V = TypeVar("V")


@st.composite
def backlogs(draw: st.DrawFn) -> Backlog:
    """A random backlog. Only its sizes and a seed are drawn: that is quick, and sizes are what shrinking helps with."""
    pools, tenants, tasks = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 40))
    chance = Random(draw(st.integers(0, 2**32)))
    backlog = Backlog()
    _open_pools(backlog, pools, chance)
    _seat_tenants(backlog, tenants, chance)
    resources = [
        backlog.bucket(1, rate=chance.uniform(0.0, 5.0), burst=10.0, level=chance.uniform(-5.0, 10.0), margin=0.02),
        backlog.bucket(2, rate=1.0, burst=20.0),
        backlog.semaphore(3, permits=chance.randint(0, 4)),
    ]
    for number in range(1, tasks + 1):
        needs = chance.sample(resources, chance.randint(0, 2))
        wait(
            backlog,
            task(
                number,
                ready_at=NOW - chance.uniform(-5.0, 900.0),
                latest_start=chance.choice([None, NOW + chance.uniform(-20.0, 20.0)]),
                expected_s=chance.choice([0.1, 1.0, 10.0]),
            ),
            pool=chance.randint(1, pools),
            priority=chance.choice(list(PriorityClass)),
            tenant=chance.randint(1, tenants),
            needs={r: chance.choice([1.0, 2.0, 4.0]) for r in needs},
        )
    backlog.credits = {(p, c): chance.uniform(0.0, 2.0) for p in backlog.pools for c in PriorityClass}
    return backlog


def _open_pools(backlog: Backlog, pools: int, chance: Random) -> None:
    for number in range(1, pools + 1):
        pool = backlog.pool(number, slots=chance.randint(0, 8), worker=None)
        backlog.pools[pool] = replace(backlog.pools[pool], paused=chance.random() < 0.1)
        for worker in range(chance.randint(0, 2)):
            backlog.workers[WorkerId(f"w{worker}"), pool] = chance.randint(0, 5)


def _seat_tenants(backlog: Backlog, tenants: int, chance: Random) -> None:
    for number in range(1, tenants + 1):
        tenant = backlog.tenant(number, weight=chance.choice([0.0, 0.5, 1.0, 3.0]))
        if chance.random() < 0.5:
            counter = FairCounter(chance.uniform(0.0, 20.0), chance.uniform(0.0, NOW))
            backlog.tenants[tenant] = replace(backlog.tenants[tenant], counters=dict.fromkeys(PriorityClass, counter))


def backwards(items: Mapping[K, V]) -> dict[K, V]:
    return dict(reversed(list(items.items())))


def taken(backlog: Backlog, snapshot: Snapshot) -> dict[ResourceId, float]:
    needs = {d.id: d.resources for d in backlog.demands.values()}
    total: Counter[ResourceId] = Counter()
    for start in make_plan(snapshot).starts:
        for resource, amount in zip(needs[start.lane.demand], start.amounts, strict=True):
            total[resource] += amount  # type: ignore[assignment]  # a Counter of fractions
    return dict(total)


@given(backlogs())
def test_no_task_starts_twice_and_only_waiting_tasks_start(backlog: Backlog) -> None:
    waiting = {t.id: key for key, tasks in backlog.lanes.items() for t in tasks}
    starts = make_plan(backlog.snapshot(NOW)).starts
    assert len({s.task for s in starts}) == len(starts)
    assert all(waiting[s.task] == s.lane for s in starts)


@given(backlogs())
def test_slots_of_pools_and_workers_are_never_exceeded(backlog: Backlog) -> None:
    starts = make_plan(backlog.snapshot(NOW)).starts
    for pool, used in Counter(s.lane.pool for s in starts).items():
        assert used <= backlog.pools[pool].slots
        assert not backlog.pools[pool].paused
    for seat, used in Counter((s.worker, s.lane.pool) for s in starts).items():
        assert used <= backlog.workers[seat]


@given(backlogs())
def test_no_limit_gives_more_than_it_has(backlog: Backlog) -> None:
    snapshot = backlog.snapshot(NOW)
    for resource, amount in taken(backlog, snapshot).items():
        view = snapshot.resources[resource]
        assert amount <= (view.permits or view.burst) + 1e-6


@given(backlogs())
def test_the_same_snapshot_gives_the_same_plan_in_whatever_order_it_is_listed(backlog: Backlog) -> None:
    snapshot = backlog.snapshot(NOW)
    shuffled = replace(
        snapshot,
        lanes=snapshot.lanes[::-1],
        workers=snapshot.workers[::-1],
        pools=backwards(snapshot.pools),
        tenants=backwards(snapshot.tenants),
        resources=backwards(snapshot.resources),
        credits=backwards(snapshot.credits),
    )
    assert make_plan(snapshot) == make_plan(snapshot)
    assert make_plan(snapshot).starts == make_plan(shuffled).starts


@given(backlogs())
def test_a_lane_is_first_in_first_out_but_for_deadlines(backlog: Backlog) -> None:
    plan = make_plan(backlog.snapshot(NOW))
    started = {s.task for s in plan.starts}
    for tasks in backlog.lanes.values():
        calm = [t.id in started for t in tasks if t.latest_start is None]
        assert calm == sorted(calm, reverse=True)


@given(backlogs())
def test_a_plan_starts_all_that_can_start_now(backlog: Backlog) -> None:
    plan = make_plan(backlog.snapshot(NOW))
    assert not plan.truncated
    backlog.carry_out(plan)
    assert not make_plan(backlog.snapshot(NOW)).starts


@settings(max_examples=300)
@given(backlogs(), st.integers(1, 4), st.integers(1, 6))
def test_narrow_windows_and_bounded_plans_keep_the_order(backlog: Backlog, width: int, starts_max: int) -> None:
    whole = [s.task for s in make_plan(backlog.snapshot(NOW)).starts]
    assert in_steps(backlog, width, starts_max) == whole


def in_steps(backlog: Backlog, width: int, starts_max: int) -> list[TaskId]:
    found: list[TaskId] = []
    while True:
        plan = make_plan(backlog.snapshot(NOW, width=width), starts_max=starts_max)
        backlog.carry_out(plan)
        found += [s.task for s in plan.starts]
        if not plan.truncated:
            return found
        assert plan.starts
