"""One plan: what starts, on which worker, why the rest waits, and what is left behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.order import OrderPolicy
from scheduler.policy.plan import make_plan
from scheduler.policy.types import FairCounter, Hold, Lane, PoolId, PriorityClass, TenantId, WaitReason, WorkerId
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait
from tests.policy.stage import CRITICAL, HIGH, LOW, NORMAL, Stage


def one_pool(slots: int = 10) -> Backlog:
    backlog = Backlog()
    backlog.pool(slots=slots)
    return backlog


def started(backlog: Backlog, *, now: float = 0.0, starts_max: int = 500) -> list[int]:
    return [s.task for s in make_plan(backlog.snapshot(now), starts_max=starts_max).starts]


def reasons(backlog: Backlog) -> list[WaitReason]:
    return [h.reason for h in make_plan(backlog.snapshot(0.0)).holds]


def test_nothing_waiting_is_an_empty_plan() -> None:
    plan = make_plan(Backlog().snapshot(5.0))
    assert (plan.now, plan.starts, plan.holds, plan.look_again_at, plan.truncated) == (5.0, (), (), None, False)


def test_classes_go_in_their_order() -> None:
    backlog = one_pool()
    for number, priority in enumerate([LOW, NORMAL, HIGH, CRITICAL], start=1):
        wait(backlog, task(number), priority=priority)
    assert started(backlog) == [4, 3, 2, 1]


def test_a_lane_is_first_in_first_out_and_ids_break_ties() -> None:
    backlog = one_pool()
    wait(backlog, task(3, ready_at=1.0), task(1, ready_at=2.0), task(2, ready_at=1.0))
    assert started(backlog, now=5.0) == [2, 3, 1]


def test_a_deadline_that_presses_goes_before_older_work_of_its_lane() -> None:
    backlog = one_pool()
    wait(backlog, task(1), task(2), task(3, ready_at=1.0, latest_start=2.0), task(4, latest_start=1_000.0))
    assert started(backlog, now=2.0) == [3, 1, 2, 4]


def test_lanes_of_one_tenant_go_by_their_heads() -> None:
    backlog = one_pool()
    api = backlog.bucket(1, rate=1.0, burst=10.0)
    wait(backlog, task(1, ready_at=0.0), task(4, ready_at=3.0))
    wait(backlog, task(2, ready_at=1.0), task(3, ready_at=2.0), needs={api: 1.0})
    assert started(backlog, now=9.0) == [1, 2, 3, 4]


def test_tenants_take_turns_by_their_counters() -> None:
    backlog = one_pool(4)
    wait(backlog, task(1), task(2), task(3), tenant=1)
    wait(backlog, task(4), task(5), task(6), tenant=2)
    assert started(backlog) == [1, 4, 2, 5]
    backlog.tenants[TenantId(1)] = replace(backlog.tenants[TenantId(1)], counters={NORMAL: FairCounter(2.5, 1.0)})
    backlog.tenants[TenantId(2)] = replace(backlog.tenants[TenantId(2)], counters={NORMAL: FairCounter(0.0, 1.0)})
    assert started(backlog, now=2.0) == [4, 5, 6, 1]


def test_the_least_loaded_worker_takes_the_next_start() -> None:
    backlog = Backlog()
    pool = backlog.pool(slots=10, worker=None)
    for name, slots in [("a", 1), ("b", 3), ("idle", 0)]:
        backlog.workers[WorkerId(name), pool] = slots
    wait(backlog, *(task(n) for n in range(1, 6)))
    assert [s.worker for s in make_plan(backlog.snapshot(0.0)).starts] == ["b", "b", "a", "b"]


@pytest.mark.parametrize(("slots", "offered", "starts"), [(2, 5, 2), (5, 2, 2), (0, 5, 0)])
def test_neither_the_pools_nor_the_workers_slots_are_exceeded(slots: int, offered: int, starts: int) -> None:
    backlog = Backlog()
    backlog.workers[WorkerId("w"), backlog.pool(slots=slots, worker=None)] = offered
    wait(backlog, *(task(n) for n in range(1, 9)))
    assert len(started(backlog)) == starts


def test_whatever_keeps_a_lane_back_is_named() -> None:
    backlog = one_pool(1)
    paused = backlog.pool(2)
    backlog.pools[paused] = replace(backlog.pools[paused], paused=True)
    empty = backlog.pool(3, worker=None)
    wait(backlog, task(1), task(2))
    wait(backlog, task(3), pool=paused)
    wait(backlog, task(4), pool=empty)
    wait(backlog, task(5), tenant=5)
    backlog.tenants[TenantId(5)] = replace(backlog.tenants[TenantId(5)], suspended=True)
    assert sorted(reasons(backlog)) == sorted(
        [WaitReason.POOL_PAUSED, WaitReason.NO_WORKER, WaitReason.TENANT_SUSPENDED, WaitReason.NO_FREE_SLOT]
    )
    backlog.carry_out(make_plan(backlog.snapshot(0.0)))
    assert reasons(backlog).count(WaitReason.NO_FREE_SLOT) == 1


def test_a_full_pool_without_workers_lacks_slots_not_workers() -> None:
    backlog = Backlog()
    backlog.pool(slots=0, worker=None)
    wait(backlog, task(1))
    assert reasons(backlog) == [WaitReason.NO_FREE_SLOT]


def test_several_resources_are_taken_together_or_not_at_all() -> None:
    backlog = one_pool()
    full, short = backlog.bucket(1, rate=1.0, burst=10.0), backlog.bucket(2, rate=0.5, burst=10.0, level=1.0)
    lane = wait(backlog, task(1), needs={full: 4.0, short: 3.0})
    plan = make_plan(backlog.snapshot(0.0))
    assert not plan.starts
    assert not plan.levels, "what was there is not taken for later"
    assert [replace(h, look_again_at=None) for h in plan.holds] == [
        Hold(lane, WaitReason.RESOURCE, None, short, 3.0, 1.0)
    ]
    assert plan.look_again_at == pytest.approx(4.0)
    assert make_plan(backlog.snapshot(4.0)).levels == {full: 6.0, short: 0.0}


def test_a_head_that_lacks_several_limits_waits_for_the_last_and_frees_each_as_it_fills() -> None:
    backlog = one_pool()
    soon, late = backlog.bucket(1, rate=1.0, burst=9.0, level=0.0), backlog.bucket(2, rate=1.0, burst=9.0, level=-5.0)
    wait(backlog, task(1), needs={soon: 1.0, late: 1.0})
    plan = make_plan(backlog.snapshot(0.0))
    assert plan.holds[0].look_again_at == pytest.approx(6.0)
    assert plan.look_again_at == pytest.approx(1.0)
    gpu = backlog.semaphore(3, permits=0)
    wait(backlog, task(2), tenant=2, needs={soon: 1.0, gpu: 1.0})
    backlog.lanes.pop(next(iter(backlog.lanes)))
    plan = make_plan(backlog.snapshot(0.0))
    assert plan.holds[0].look_again_at is None, "nobody knows when a permit comes back"
    assert plan.look_again_at == pytest.approx(1.0)


def test_nothing_with_a_lower_score_takes_what_a_head_speaks_for() -> None:
    backlog = one_pool()
    backlog.pool(2)
    api = backlog.bucket(1, rate=1.0, burst=10.0, level=5.0)
    wait(backlog, task(1), priority=HIGH, needs={api: 8.0})
    wait(backlog, task(2), pool=2, needs={api: 1.0})
    wait(backlog, task(3), pool=2)
    assert started(backlog) == [3]


def test_an_owed_class_does_not_speak_for_a_limit() -> None:
    backlog = one_pool()
    api = backlog.bucket(1, rate=1.0, burst=10.0, level=5.0)
    wait(backlog, task(1), priority=LOW, needs={api: 8.0})
    wait(backlog, task(2), priority=HIGH, needs={api: 1.0})
    backlog.credits = {(PoolId(1), LOW): 1.0}
    assert started(backlog) == [2]


def test_an_owed_class_goes_first_and_pays_for_it() -> None:
    backlog = one_pool(1)
    wait(backlog, task(1), priority=LOW)
    wait(backlog, task(2), priority=HIGH)
    backlog.credits = {(PoolId(1), LOW): 1.5, (PoolId(9), LOW): 2.0}
    plan = make_plan(backlog.snapshot(0.0))
    assert [s.task for s in plan.starts] == [1]
    assert plan.credits[PoolId(1), LOW] == pytest.approx(0.55)
    assert (PoolId(9), LOW) not in plan.credits, "a pool without work keeps its credit as it is"


def test_among_owed_classes_the_larger_credit_then_the_better_class_goes_first() -> None:
    backlog = one_pool(3)
    wait(backlog, task(1), priority=HIGH)
    wait(backlog, task(2), priority=NORMAL)
    wait(backlog, task(3), priority=LOW)
    backlog.credits = {(PoolId(1), LOW): 1.0, (PoolId(1), NORMAL): 1.0}
    assert started(backlog) == [2, 3, 1]
    backlog.credits = {(PoolId(1), LOW): 1.5, (PoolId(1), NORMAL): 1.0}
    assert started(backlog) == [3, 2, 1]


def test_shares_of_zero_leave_the_order_to_the_score() -> None:
    stage = Stage(order=OrderPolicy(shares=(0.0, 0.0, 0.0, 0.0)))
    stage.backlog.pool(slots=1)
    for _ in range(100):
        stage.submit("high", priority=HIGH)
    stage.submit("low", priority=LOW)
    assert stage.run() == ["high"] * 100 + ["low"]


def test_an_owed_class_with_only_blocked_lanes_passes_and_keeps_its_credit() -> None:
    backlog = one_pool()
    backlog.pool(2)
    api = backlog.bucket(1, rate=1.0, burst=10.0, level=2.0)
    other = backlog.bucket(2, rate=1.0, burst=10.0, level=0.0)
    wait(backlog, task(1), tenant=1, priority=LOW, needs={api: 8.0})
    wait(backlog, task(2), tenant=2, priority=LOW, needs={api: 3.0})
    wait(backlog, task(3), tenant=3, priority=LOW, needs={other: 3.0})
    wait(backlog, task(4), tenant=4, priority=LOW, needs={other: 3.0})
    wait(backlog, task(5), priority=HIGH)
    backlog.credits = {(PoolId(1), LOW): 1.5}
    plan = make_plan(backlog.snapshot(0.0))
    assert [s.task for s in plan.starts] == [5]
    assert plan.credits[PoolId(1), LOW] >= 1.5


def test_an_owed_class_starts_the_first_of_its_lanes_that_can_go() -> None:
    backlog = one_pool(1)
    api = backlog.bucket(1, rate=1.0, burst=10.0, level=3.0)
    wait(backlog, task(1), tenant=1, priority=LOW, needs={api: 8.0})
    wait(backlog, task(3), tenant=3, priority=LOW, needs={api: 2.0})
    wait(backlog, task(2), tenant=2, priority=LOW, needs={api: 2.0})
    wait(backlog, task(4), priority=HIGH)
    backlog.credits = {(PoolId(1), LOW): 1.0}
    assert started(backlog) == [2]


def test_a_plan_is_bounded_and_says_that_it_stopped() -> None:
    backlog = one_pool()
    wait(backlog, *(task(n) for n in range(1, 9)))
    assert started(backlog, starts_max=3) == [1, 2, 3]
    assert make_plan(backlog.snapshot(0.0), starts_max=3).truncated
    assert not make_plan(backlog.snapshot(0.0), starts_max=8).truncated


def test_what_a_plan_leaves_behind_is_what_it_did() -> None:
    backlog = one_pool()
    api = backlog.bucket(1, rate=1.0, burst=10.0)
    backlog.tenant(1, weight=2.0)
    wait(backlog, task(1, expected_s=3.0), task(2, expected_s=5.0), needs={api: 2.0})
    plan = make_plan(backlog.snapshot(7.0))
    assert plan.levels == {api: 6.0}
    assert plan.counters == {(1, NORMAL): 4.0}
    assert plan.clocks == {NORMAL: 1.5}


@pytest.mark.parametrize("shared", [False, True])
def test_an_urgent_class_is_compared_with_better_ones_where_they_compete(*, shared: bool) -> None:
    """Pool 2's high work competes with pool 1's low work only at a limit that both need."""
    backlog = one_pool(2)
    backlog.pool(2, slots=2)
    api = backlog.bucket(1, rate=1.0, burst=10.0, level=2.0)
    needs = {api: 1.0} if shared else {}
    backlog.tenants[TenantId(1)] = replace(backlog.tenants[backlog.tenant(1)], counters={LOW: FairCounter(50.0, 0.0)})
    wait(backlog, task(1, latest_start=0.0), tenant=1, priority=LOW, needs=needs)
    wait(backlog, task(2), tenant=2, priority=LOW, needs=needs)
    wait(backlog, task(3), tenant=3, priority=HIGH, pool=2, needs=needs)
    assert started(backlog) == ([1, 3] if shared else [2, 1, 3])


def test_a_late_task_speaks_for_all_it_needs_only_while_waiting_can_help() -> None:
    backlog = one_pool()
    x, y = backlog.semaphore(1, permits=1), backlog.semaphore(2, permits=1)
    wait(backlog, task(1), needs={x: 1.0})
    backlog.carry_out(make_plan(backlog.snapshot(0.0)))
    wait(backlog, task(2), needs={x: 1.0, y: 1.0})
    wait(backlog, task(3, ready_at=1.0), needs={y: 1.0})
    assert started(backlog, now=400.0) == [3]
    assert started(backlog, now=401.0) == []
    backlog.edit(x, now=0.0, permits=0)
    assert started(backlog, now=401.0) == [3]


def test_a_lane_whose_tasks_all_went_away_is_no_lane() -> None:
    backlog = one_pool()
    lane = wait(backlog, task(1))
    snapshot = replace(backlog.snapshot(0.0), lanes=(Lane(lane, ()),))
    plan = make_plan(snapshot)
    assert (plan.starts, plan.holds) == ((), ())


def test_classes_are_called_as_users_know_them() -> None:
    assert [p.label for p in PriorityClass] == ["critical", "high", "normal", "low"]
