"""Situations in which a plausible planner goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.plan import make_plan
from scheduler.policy.types import FairCounter, PoolId, PriorityClass, TenantId, WaitReason, WorkerId
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait
from tests.policy.stage import HIGH, LOW, NORMAL, Stage


def test_workers_that_are_all_busy_are_not_called_missing() -> None:
    backlog = Backlog()
    backlog.pool(slots=5, worker=None)
    backlog.workers[WorkerId("w"), PoolId(1)] = 1
    wait(backlog, task(1))
    backlog.carry_out(make_plan(backlog.snapshot(0.0)))
    wait(backlog, task(2))
    assert [h.reason for h in make_plan(backlog.snapshot(0.0)).holds] == [WaitReason.NO_FREE_SLOT]


def test_an_urgent_task_does_not_pull_its_class_past_a_better_one() -> None:
    """Low is chosen for one urgent task; the low work of a tenant with a lower counter must not ride along."""
    stage = Stage()
    stage.backlog.pool(slots=1)
    stage.backlog.tenants[TenantId(1)] = replace(
        stage.backlog.tenants[stage.backlog.tenant(1)], counters={LOW: FairCounter(50.0, 0.0)}
    )
    stage.submit("urgent", tenant=1, priority=LOW, latest_start=0.0)
    for _ in range(20):
        stage.submit("idle", tenant=2, priority=LOW)
    for _ in range(5):
        stage.submit("high", tenant=3, priority=HIGH)
    assert stage.run()[:6] == ["urgent", *["high"] * 5]


def test_an_owed_class_whose_first_lane_is_blocked_starts_another() -> None:
    stage = Stage()
    stage.backlog.pool(slots=1)
    empty = stage.backlog.bucket(1, rate=1.0, burst=1.0, level=0.0)
    stage.backlog.edit(empty, now=0.0, rate=0.0)
    stage.submit("blocked", tenant=1, priority=LOW, needs={empty: 1.0})
    for _ in range(10):
        stage.submit("low", tenant=2, priority=LOW, runs_s=0.1)
    for _ in range(300):
        stage.submit("high", tenant=3, priority=HIGH, runs_s=0.1)
    names = stage.run(until=22.0)
    assert names[:200].count("low") >= 9


def test_a_newcomer_in_a_slow_pool_is_not_measured_by_the_pace_of_a_fast_one() -> None:
    """The class's virtual time runs with the fast pool; tenants of the slow one would never catch up with it."""
    stage = Stage()
    stage.backlog.pool(1, slots=1)
    stage.backlog.pool(2, slots=50)
    for _ in range(40):
        stage.submit("old", pool=1, tenant=1, runs_s=1.0)
    for _ in range(2_000):
        stage.submit("fast", pool=2, tenant=3, runs_s=1.0)
    stage.run(until=5.5)
    for _ in range(2):
        stage.submit("new", pool=1, tenant=2, runs_s=1.0)
    stage.run(until=10.5)
    assert stage.times("new") == [6.0, 8.0]


def test_a_request_larger_than_a_lowered_semaphore_does_not_hide_smaller_ones() -> None:
    stage = Stage()
    stage.backlog.pool()
    gpu = stage.backlog.semaphore(1, permits=4)
    stage.submit("four", tenant=1, needs={gpu: 4.0})
    stage.submit("one", tenant=2, needs={gpu: 1.0})
    stage.backlog.edit(gpu, now=0.0, permits=3)
    assert stage.run() == ["one"]
    stage.backlog.edit(gpu, now=stage.now, permits=4)
    assert stage.run() == ["one", "four"]


def test_a_bucket_with_rate_zero_is_paused_whatever_is_left_in_it() -> None:
    backlog = Backlog()
    backlog.pool()
    api = backlog.bucket(1, rate=0.0, burst=10.0)
    wait(backlog, task(1), needs={api: 1.0})
    plan = make_plan(backlog.snapshot(0.0))
    assert not plan.starts
    assert plan.look_again_at is None


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_deadlines_behind_the_window_keep_their_turn(width: int) -> None:
    def names(width: int) -> list[str]:
        stage = Stage(width=width)
        stage.backlog.pool(slots=20)
        for number in range(20):
            stage.submit(f"t{number}", latest_start=10.0 - number / 10, expected_s=30.0)
        return stage.run()

    assert names(width) == names(1_000)


def test_a_used_up_window_does_not_speak_for_what_its_last_task_needed() -> None:
    """The task behind the window may need less than the one that was started last."""
    stage = Stage(width=1)
    stage.backlog.pool()
    api = stage.backlog.bucket(1, rate=1.0, burst=10.0)
    stage.submit("eight", needs={api: 8.0})
    stage.submit("two", needs={api: 2.0})
    stage.run(until=0.0)
    assert stage.names() == ["eight", "two"]


def test_two_streams_of_single_permits_do_not_starve_the_one_that_needs_both() -> None:
    stage = Stage()
    stage.backlog.pool()
    x, y = stage.backlog.semaphore(1, permits=1), stage.backlog.semaphore(2, permits=1)
    stage.submit("x", needs={x: 1.0}, runs_s=1.0)
    stage.submit("y", needs={y: 1.0}, runs_s=1.5)
    stage.run(until=0.0)
    stage.submit("xy", needs={x: 1.0, y: 1.0})
    stage.stream("x", every_s=0.5, until=900.0, submit=lambda name: stage.submit(name, needs={x: 1.0}, runs_s=1.0))
    stage.stream("y", every_s=0.5, until=900.0, submit=lambda name: stage.submit(name, needs={y: 1.0}, runs_s=1.0))
    stage.run(until=800.0)
    assert stage.waits("xy")
    assert stage.waits("xy")[0] <= 410.0


def test_the_time_to_look_again_is_never_too_early() -> None:
    stage = Stage(now=1_796_000_000.0)
    stage.backlog.pool(slots=1_000)
    api = stage.backlog.bucket(1, rate=3_333.3, burst=50_000.0, level=0.0)
    stage.backlog.edit(api, now=stage.now, level=0.0)
    for _ in range(100):
        stage.submit("t", needs={api: 777.7})
    assert len(stage.run(until=stage.now + 60.0)) == 100


def test_the_order_of_lanes_and_credits_in_the_snapshot_does_not_matter() -> None:
    backlog = Backlog()
    backlog.pool(1, slots=3)
    backlog.pool(2, slots=3)
    for number in range(1, 13):
        wait(backlog, task(number), pool=1 + number % 2, tenant=number % 3 + 1, priority=(NORMAL, LOW)[number % 2])
    backlog.credits = {(PoolId(p), c): 1.0 for p in (1, 2) for c in (NORMAL, LOW)}
    there = backlog.snapshot(0.0)
    back = replace(
        there,
        lanes=there.lanes[::-1],
        credits=dict(reversed(list(there.credits.items()))),
        pools=dict(reversed(list(there.pools.items()))),
    )
    assert make_plan(there).starts == make_plan(back).starts
    assert PriorityClass.LOW in {s.lane.priority for s in make_plan(there).starts}


def test_a_head_that_waits_for_a_paused_limit_keeps_nothing_else() -> None:
    stage = Stage()
    stage.backlog.pool()
    paused, gpu = stage.backlog.semaphore(1, permits=0), stage.backlog.semaphore(2, permits=10)
    stage.submit("large", tenant=1, needs={paused: 1.0, gpu: 8.0})
    for _ in range(10):
        stage.submit("small", tenant=2, needs={gpu: 1.0})
    assert stage.run(until=0.0) == ["small"] * 10


def test_a_clock_that_went_back_refills_nothing_and_refills_again_from_there() -> None:
    stage = Stage(now=1_000.0)
    stage.backlog.pool(slots=100)
    api = stage.backlog.bucket(1, rate=1.0, burst=5.0, level=0.0)
    stage.backlog.edit(api, now=1_000.0, level=0.0)
    stage.now = 400.0
    for _ in range(10):
        stage.submit("t", needs={api: 1.0})
    stage.run(until=500.0)
    assert [round(t) for t in stage.times("t")] == list(range(401, 411))


def test_levels_that_a_plan_leaves_behind_are_those_of_buckets() -> None:
    """What is held of a semaphore comes from live leases; a level of its own would drift from them."""
    backlog = Backlog()
    backlog.pool()
    gpu, api = backlog.semaphore(1, permits=4), backlog.bucket(2, rate=1.0, burst=5.0)
    wait(backlog, task(1), needs={gpu: 1.0, api: 2.0})
    assert make_plan(backlog.snapshot(0.0)).levels == {api: 3.0}


def test_a_head_that_also_waits_for_a_permit_does_not_hide_a_bucket_that_has_filled() -> None:
    """Nobody knows when the permit comes back; the plan must look again when the bucket has enough for the head."""
    stage = Stage()
    stage.backlog.pool()
    gpu, api = stage.backlog.semaphore(1, permits=1), stage.backlog.bucket(2, rate=1.0, burst=10.0, level=0.0)
    stage.submit("long", needs={gpu: 1.0}, runs_s=1_000.0)
    stage.run(until=0.0)
    stage.submit("both", priority=HIGH, needs={gpu: 1.0, api: 4.0})
    stage.submit("small", tenant=2, needs={api: 1.0})
    stage.run(until=10.0)
    assert [round(t, 3) for t in stage.times("small")] == [4.0]
