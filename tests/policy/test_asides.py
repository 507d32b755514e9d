"""What is kept for a task of a class that is owed its share: when it counts, goes first, and is given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.plan import make_plan
from scheduler.policy.types import Plan, PriorityClass, ResourceId, SetAside, TaskId, WaitReason
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait

HIGH, LOW = PriorityClass.HIGH, PriorityClass.LOW
BUCKET, PERMITS = ResourceId(1), ResourceId(2)
NOW = 1_000.0


def world(*, level: float, since: float, amount: float = 40.0, slots: int = 10) -> Backlog:
    """A low task of 40 for which 5 % of 10/s is kept since then, and high tasks of one token that came after it."""
    backlog = Backlog()
    backlog.pool(slots=slots)
    backlog.bucket(1, rate=10.0, burst=50.0, level=level)
    backlog.resources[BUCKET] = replace(backlog.resources[BUCKET], level_at=NOW)
    wait(backlog, task(1, ready_at=NOW - 300.0), priority=LOW, needs={BUCKET: amount})
    wait(backlog, *(task(n, ready_at=NOW) for n in range(2, 9)), priority=HIGH, tenant=2, needs={BUCKET: 1.0})
    backlog.set_asides[BUCKET, LOW] = SetAside(TaskId(1), amount, since)
    return backlog


def plan(backlog: Backlog) -> Plan:
    return make_plan(backlog.snapshot(NOW))


def started(found: Plan) -> list[int]:
    return [start.task for start in found.starts]


def test_what_is_complete_goes_next_though_its_class_is_not_owed_a_start() -> None:
    found = plan(world(level=42.0, since=NOW - 100.0))
    assert started(found) == [1, 2, 3]
    assert found.set_asides == {(BUCKET, LOW): None}
    assert found.levels[BUCKET] == pytest.approx(0.0)


def test_others_take_what_is_not_kept_and_the_rest_stays() -> None:
    found = plan(world(level=13.0, since=NOW - 20.0))
    assert started(found) == [2, 3, 4], "10 of 13 are kept"
    assert found.set_asides == {}
    assert found.levels[BUCKET] == pytest.approx(10.0)
    hold = next(hold for hold in found.holds if hold.lane.priority is HIGH)
    assert hold.available == pytest.approx(0.0)
    assert hold.look_again_at == pytest.approx(NOW + 1.0 / 9.5), "meanwhile a part of what comes back is kept"


def test_nothing_is_kept_from_a_full_bucket() -> None:
    backlog = world(level=50.0, since=NOW - 40.0, slots=3)
    found = plan(backlog)
    assert started(found) == [2, 3, 4]
    assert found.set_asides == {}


def test_a_task_that_needs_more_than_would_be_left_may_take_what_is_kept_which_then_grows_anew() -> None:
    backlog = world(level=50.0, since=NOW - 60.0, slots=1)
    wait(backlog, task(20, ready_at=NOW - 50.0), priority=PriorityClass.CRITICAL, tenant=3, needs={BUCKET: 50.0})
    found = plan(backlog)
    assert started(found) == [20]
    assert found.set_asides == {(BUCKET, LOW): SetAside(TaskId(1), 40.0, NOW)}
    assert found.levels[BUCKET] == pytest.approx(0.0)


def test_what_is_complete_is_given_up_when_its_task_waits_for_something_else() -> None:
    backlog = world(level=42.0, since=NOW - 100.0)
    backlog.withdraw(next(iter(backlog.lanes)), TaskId(1))
    backlog.semaphore(2, permits=0)
    wait(backlog, task(1, ready_at=NOW - 300.0), priority=LOW, needs={BUCKET: 40.0, PERMITS: 1.0})
    found = plan(backlog)
    assert started(found) == [2, 3, 4, 5, 6, 7, 8]
    assert found.set_asides == {(BUCKET, LOW): None}


def test_what_is_complete_in_one_bucket_begins_in_the_other_that_is_short() -> None:
    backlog = world(level=42.0, since=NOW - 100.0)
    backlog.withdraw(next(iter(backlog.lanes)), TaskId(1))
    backlog.bucket(2, rate=1.0, burst=10.0, level=0.0)
    wait(backlog, task(1, ready_at=NOW - 300.0), priority=LOW, needs={BUCKET: 40.0, PERMITS: 9.0})
    backlog.resources[PERMITS] = replace(backlog.resources[PERMITS], level_at=NOW)
    found = plan(backlog)
    assert 1 not in started(found)
    assert found.set_asides == {(PERMITS, LOW): SetAside(TaskId(1), 9.0, NOW)}


def test_nothing_is_kept_for_a_task_that_is_not_the_next_of_its_lane_or_has_no_slot() -> None:
    backlog = world(level=42.0, since=NOW - 100.0)
    wait(backlog, task(0, ready_at=NOW - 400.0), priority=LOW, needs={BUCKET: 45.0})
    found = plan(backlog)
    assert started(found) == [2, 3, 4, 5, 6, 7, 8]
    full = world(level=42.0, since=NOW - 100.0, slots=0)
    assert {hold.reason for hold in plan(full).holds} == {WaitReason.NO_FREE_SLOT}


def test_one_slot_serves_one_of_two_that_are_complete() -> None:
    backlog = world(level=50.0, since=NOW - 100.0, slots=1)
    backlog.bucket(2, rate=10.0, burst=50.0)
    wait(backlog, task(30, ready_at=NOW - 300.0), priority=LOW, tenant=4, needs={PERMITS: 40.0})
    backlog.set_asides[PERMITS, LOW] = SetAside(TaskId(30), 40.0, NOW - 100.0)
    found = plan(backlog)
    assert started(found) == [30]
    assert found.set_asides == {(PERMITS, LOW): None}


def test_a_second_task_of_the_class_waits_until_the_first_was_served() -> None:
    backlog = world(level=0.0, since=NOW - 10.0)
    wait(backlog, task(40, ready_at=NOW - 500.0), priority=LOW, tenant=5, needs={BUCKET: 30.0})
    backlog.credits[next(iter(backlog.pools)), LOW] = 1.0
    assert plan(backlog).set_asides == {}
