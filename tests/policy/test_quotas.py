"""A tenant's own limits, what a class must leave, and what is set aside for one that is owed its share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from scheduler.policy.fairness import WEIGHT_MIN, correction
from scheduler.policy.plan import make_plan
from scheduler.policy.types import PriorityClass, ResourceId, WaitReason
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait
from tests.policy.stage import HIGH, LOW, NORMAL, Stage

BUCKET = ResourceId(1)


def hold_reasons(backlog: Backlog, now: float = 0.0) -> Counter[WaitReason]:
    return Counter(hold.reason for hold in make_plan(backlog.snapshot(now)).holds)


def test_a_capped_tenant_starts_at_its_rate_and_others_are_not_touched() -> None:
    stage = Stage()
    stage.backlog.pool(slots=50)
    stage.backlog.tenant(1, start_rate=5.0, start_burst=5.0)
    stage.backlog.tenant(2)
    for _ in range(100):
        stage.submit("campaign", tenant=1, runs_s=0.1)
    stage.stream("other", every_s=0.1, until=20.0, submit=lambda name: stage.submit(name, tenant=2, runs_s=0.1))
    stage.run(until=30.0)
    times = stage.times("campaign")
    assert len(times) == 100
    assert times[4] == 0.0
    assert all(later - earlier >= 0.2 - 1e-6 for earlier, later in pairwise(times[4:]))
    assert times[-1] == pytest.approx(19.0, abs=0.01)
    assert max(stage.waits("other")) == 0.0


def test_the_reason_is_the_tenants_start_rate_and_says_when_to_look_again() -> None:
    backlog = Backlog()
    backlog.pool()
    backlog.tenant(1, start_rate=4.0, start_burst=1.0)
    wait(backlog, task(1), task(2))
    plan = make_plan(backlog.snapshot(0.0))
    assert [start.task for start in plan.starts] == [1]
    (hold,) = plan.holds
    assert hold.reason is WaitReason.TENANT_START_RATE
    assert hold.look_again_at == pytest.approx(0.25)
    assert plan.look_again_at == hold.look_again_at
    backlog.carry_out(plan)
    assert hold_reasons(backlog, now=0.1) == {WaitReason.TENANT_START_RATE: 1}
    assert len(make_plan(backlog.snapshot(plan.look_again_at or 0.0)).starts) == 1


def test_a_start_rate_of_zero_starts_nothing_and_waits_for_an_edit() -> None:
    backlog = Backlog()
    backlog.pool()
    backlog.tenant(1, start_rate=0.0, start_burst=5.0)
    wait(backlog, task(1))
    plan = make_plan(backlog.snapshot(0.0))
    assert not plan.starts
    assert plan.look_again_at is None


def test_no_more_of_a_tenant_run_than_it_may_and_the_next_starts_when_one_ends() -> None:
    stage = Stage()
    stage.backlog.pool(slots=50)
    stage.backlog.tenant(1, max_in_flight=3)
    for _ in range(9):
        stage.submit("mine", tenant=1, runs_s=1.0)
    stage.submit("other", tenant=2)
    stage.run(until=0.0)
    assert Counter(stage.names()) == {"mine": 3, "other": 1}
    assert hold_reasons(stage.backlog) == {WaitReason.TENANT_IN_FLIGHT: 1}
    stage.run()
    assert Counter(stage.times("mine")) == {0.0: 3, 1.0: 3, 2.0: 3}


def test_both_limits_hold_and_a_full_tenant_does_not_wait_for_the_clock() -> None:
    backlog = Backlog()
    backlog.pool()
    backlog.tenant(1, start_rate=10.0, start_burst=1.0, max_in_flight=1)
    wait(backlog, task(1), task(2))
    backlog.carry_out(make_plan(backlog.snapshot(0.0)))
    plan = make_plan(backlog.snapshot(0.05))
    assert plan.look_again_at is None, "only the end of what runs lets the next one start"
    assert [hold.reason for hold in plan.holds] == [WaitReason.TENANT_START_RATE]
    assert hold_reasons(backlog, now=1.0) == {WaitReason.TENANT_IN_FLIGHT: 1}


def test_all_lanes_of_a_tenant_leave_when_its_limit_is_used_up() -> None:
    backlog = Backlog()
    backlog.pool(1)
    backlog.pool(2)
    backlog.tenant(1, max_in_flight=1)
    for pool, priority in ((1, HIGH), (1, LOW), (2, NORMAL)):
        wait(backlog, task(10 * pool + priority), pool=pool, priority=priority)
    plan = make_plan(backlog.snapshot(0.0))
    assert len(plan.starts) == 1
    assert [hold.reason for hold in plan.holds] == [WaitReason.TENANT_IN_FLIGHT] * 2


def test_a_tenant_kept_back_by_its_own_limit_banks_no_credit() -> None:
    stage = Stage(width=20)
    stage.backlog.pool(slots=1)
    stage.backlog.tenant(1, start_rate=0.1, start_burst=1.0)
    for _ in range(200):
        stage.submit("capped", tenant=1)
        stage.submit("other", tenant=2)
    stage.run(until=100.5)
    capped = stage.backlog.tenants[stage.began[0].start.lane.tenant]
    stage.backlog.tenants[capped.id] = replace(
        stage.backlog.tenants[capped.id], start_rate=1_000.0, start_burst=1_000.0
    )
    after = Counter(stage.run(until=140.5)[len(stage.names()) - 40 :])
    assert abs(after["capped"] - after["other"]) <= 2


def with_ceiling(stage: Stage, part: float) -> None:
    """The low class leaves this part of the bucket for others."""
    view = stage.backlog.resources[BUCKET]
    stage.backlog.resources[BUCKET] = replace(view, ceilings=(0.0, 0.0, 0.0, part))


def test_a_class_leaves_what_its_ceiling_says_and_others_may_take_it() -> None:
    stage = Stage()
    stage.backlog.pool(slots=50)
    stage.backlog.bucket(1, rate=1.0, burst=10.0)
    with_ceiling(stage, 0.4)
    for _ in range(20):
        stage.submit("low", priority=LOW, needs={BUCKET: 1.0}, runs_s=1_000.0)
    stage.run(until=0.0)
    assert len(stage.times("low")) == 6
    for _ in range(20):
        stage.submit("high", priority=HIGH, tenant=2, needs={BUCKET: 1.0}, runs_s=1_000.0)
    stage.run(until=0.0)
    assert len(stage.times("high")) == 4


def test_an_old_task_that_only_its_ceiling_keeps_back_speaks_for_nothing() -> None:
    backlog = Backlog()
    backlog.pool()
    backlog.bucket(1, rate=0.1, burst=10.0, level=4.0)
    backlog.resources[BUCKET] = replace(backlog.resources[BUCKET], ceilings=(0.0, 0.0, 0.0, 0.4))
    wait(backlog, task(1, ready_at=0.0), priority=LOW, needs={BUCKET: 1.0})
    wait(backlog, task(2, ready_at=399.0), priority=NORMAL, tenant=2, needs={BUCKET: 1.0})
    wait(backlog, task(3, ready_at=399.0), priority=LOW, tenant=2, needs={BUCKET: 0.5})
    backlog.resources[BUCKET] = replace(backlog.resources[BUCKET], level_at=400.0)
    plan = make_plan(backlog.snapshot(400.0))
    assert [start.task for start in plan.starts] == [2]


def test_an_amount_above_what_a_class_may_draw_goes_when_the_bucket_is_full() -> None:
    stage = Stage()
    stage.backlog.pool()
    stage.backlog.bucket(1, rate=1.0, burst=10.0, level=5.0)
    with_ceiling(stage, 0.4)
    stage.submit("large", priority=LOW, needs={BUCKET: 8.0})
    stage.run()
    assert stage.times("large") == [pytest.approx(5.0)]


def saturated(stage: Stage, until: float) -> None:
    """High tasks of one token each, more than a bucket of 10/s gives."""
    stage.stream(
        "high", every_s=0.05, until=until, submit=lambda name: stage.submit(name, needs={BUCKET: 1.0}, priority=HIGH)
    )


def test_a_large_low_request_finishes_in_bounded_time_behind_small_urgent_ones() -> None:
    """5 % of 10/s is set aside for it, so its 40 tokens are there within about 80 s; the rest goes to the others."""
    stage = Stage(width=50)
    stage.backlog.pool(slots=1_000)
    stage.backlog.bucket(1, rate=10.0, burst=50.0, level=0.0)
    saturated(stage, until=150.0)
    stage.at(5.0, lambda: stage.submit("large", needs={BUCKET: 40.0}, tenant=2, priority=LOW))
    stage.run(until=150.0)
    (waited,) = stage.waits("large")
    assert 60.0 <= waited <= 100.0
    used = 40.0 + len(stage.times("high"))
    assert used >= 0.98 * 10.0 * 150.0 - 1.0, "what was set aside is used, not lost"


def test_small_low_tasks_do_not_use_up_what_is_set_aside_for_the_large_one() -> None:
    stage = Stage(width=50)
    stage.backlog.pool(slots=1_000)
    stage.backlog.bucket(1, rate=10.0, burst=50.0, level=0.0)
    saturated(stage, until=300.0)
    stage.at(5.0, lambda: stage.submit("large", needs={BUCKET: 40.0}, tenant=2, priority=LOW))
    stage.stream(
        "small",
        every_s=1.0,
        until=300.0,
        submit=lambda name: stage.submit(name, needs={BUCKET: 1.0}, tenant=3, priority=LOW),
    )
    stage.run(until=300.0)
    assert stage.waits("large"), "the large one started"


def test_what_was_set_aside_for_a_task_that_cannot_start_any_more_is_free_again() -> None:
    stage = Stage(width=50)
    stage.backlog.pool(slots=1_000)
    stage.backlog.bucket(1, rate=10.0, burst=50.0, level=0.0)
    saturated(stage, until=60.0)
    large = stage.submit("large", needs={BUCKET: 40.0}, tenant=2, priority=LOW)
    stage.run(until=30.0)
    assert stage.backlog.set_asides
    lane = next(key for key in stage.backlog.lanes if key.tenant == 2)
    stage.backlog.withdraw(lane, large)
    assert not stage.backlog.snapshot(stage.now).set_asides
    stage.run(until=60.0)
    assert len(stage.times("high")) >= 0.98 * 600.0 - 20.0


def test_a_set_aside_grows_by_the_share_of_its_class_up_to_its_amount() -> None:
    backlog = Backlog()
    backlog.pool()
    backlog.bucket(1, rate=10.0, burst=100.0, level=0.0)
    backlog.credits[backlog.pools[min(backlog.pools)].id, LOW] = 1.0
    wait(backlog, task(1), priority=LOW, needs={BUCKET: 10.0})
    backlog.carry_out(make_plan(backlog.snapshot(0.0)))
    ((place, aside),) = backlog.set_asides.items()
    assert place == (BUCKET, PriorityClass.LOW)
    assert (aside.task, aside.amount, aside.since) == (1, 10.0, 0.0)
    wait(
        backlog, *(task(number, ready_at=9.0) for number in range(2, 200)), priority=HIGH, tenant=2, needs={BUCKET: 1.0}
    )
    plan = make_plan(backlog.snapshot(10.0))
    assert 1 in [start.task for start in plan.starts], "its class is owed, and the bucket has enough"
    assert plan.set_asides == {place: None}
    assert plan.levels[BUCKET] == pytest.approx(100.0 - 10.0 - 9.0)


def test_counters_are_corrected_by_what_tasks_took() -> None:
    """Both tenants promise tasks of 1 s; those of one take 3 s. By time in slots they get the same."""
    stage, chance = Stage(width=20), Random(3)
    stage.backlog.pool(slots=4)
    for _ in range(400):
        stage.submit("honest", tenant=1, runs_s=1.0)
        stage.submit("longer", tenant=2, runs_s=chance.uniform(2.0, 4.0))
    began = Counter(stage.run(until=200.0))
    assert began["honest"] / began["longer"] == pytest.approx(3.0, rel=0.06)
    assert correction(expected=1.0, actual=3.0, weight=2.0) == 1.0
    assert correction(expected=1.0, actual=1.5, weight=0.0) == 0.5 / WEIGHT_MIN
