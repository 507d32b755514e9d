"""A tenant without money holds up nobody, however many of its lanes wait; what it can still pay for gets its turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.lanegroups import REACH_MAX
from scheduler.policy.types import BudgetId, BudgetView, FairCounter, PriorityClass, TaskId, TenantId, WaitReason
from tests.policy.build import task
from tests.policy.run_backlog import RunBacklog
from tests.policy.test_lanebook_runs import NOW, Reader

NORMAL = PriorityClass.NORMAL
POOR, RUNS, CHEAP = TenantId(1), 300, TaskId(1)
SLOTS = 10


@pytest.fixture
def backlog() -> RunBacklog:
    """The poor tenant's turn comes first; all its steps but the youngest cost more than it has."""
    world = RunBacklog()
    world.pool(1, slots=SLOTS)
    for number in range(1, RUNS + 1):
        step = task(1_000 + number, ready_at=NOW - 500.0 + number)
        world.step(step._replace(cost=100, cost_min=100), run=number, tenant=POOR)
    cheap = task(CHEAP, ready_at=NOW - 1.0)
    world.step(cheap._replace(cost=5, cost_min=5), run=RUNS + 1, tenant=POOR)
    for number in range(1, 201):
        world.step(task(5_000 + number, ready_at=NOW - 300.0 + number), run=1_000 + number, tenant=2 + number % 4)
    world.demands = {place: replace(demand, priced=True) for place, demand in world.demands.items()}
    for tenant in list(world.tenants):
        counters = {NORMAL: FairCounter(0.0 if tenant == POOR else 50.0, NOW)}
        world.tenants[tenant] = replace(world.tenants[tenant], counters=counters)
    purse = BudgetView(BudgetId(1), limit=1_000, spent=990, reserved=0)
    world.tenants[POOR] = replace(world.tenants[POOR], budget=purse)
    return world


def test_others_start_at_once_and_few_lanes_are_read(backlog: RunBacklog) -> None:
    reader = Reader(backlog)
    reader.fold(NOW)
    started = 0
    read = []
    for turn in range(15):
        before = reader.lanes_read
        starts = [start for plan in reader.plans(NOW + turn) for start in plan.starts]
        read.append(reader.lanes_read - before)
        assert len(starts) == SLOTS, "every slot is taken in every round"
        started += len(starts)
        for number in list(backlog.running):
            backlog.end(TaskId(number))
        reader.fold(NOW + turn)
    assert started == 15 * SLOTS
    assert read[0] <= REACH_MAX + 8
    assert max(read[2:]) < 60, f"of more than {RUNS} lanes without money: {read}"


def test_what_it_can_pay_for_is_found_in_a_few_rounds(backlog: RunBacklog) -> None:
    """Though it is the youngest of hundreds, and the book is written anew again and again."""
    reader = Reader(backlog)
    reader.fold(NOW)
    for turn in range(200):
        started = {start.task for plan in reader.plans(NOW + turn) for start in plan.starts}
        if CHEAP in started:
            return
        for number in list(backlog.running):
            backlog.end(TaskId(number))
        reader.fold(NOW + turn)
    raise AssertionError("it was never looked at")


def test_money_lets_all_of_them_start_in_their_order(backlog: RunBacklog) -> None:
    reader = Reader(backlog)
    reader.fold(NOW)
    for turn in range(3):
        held = [hold for plan in reader.plans(NOW + turn) for hold in plan.holds if hold.lane.tenant == POOR]
        assert {hold.reason for hold in held} <= {WaitReason.TENANT_BUDGET, WaitReason.NO_FREE_SLOT}
    backlog.tenants[POOR] = replace(
        backlog.tenants[POOR], budget=BudgetView(BudgetId(1), limit=None, spent=990, reserved=0)
    )
    for number in list(backlog.running):
        backlog.end(TaskId(number))
    started = [start for plan in reader.plans(NOW + 4.0) for start in plan.starts]
    assert {start.lane.tenant for start in started} == {POOR}, "its counter is the lowest"


def test_what_costs_nothing_is_not_passed_over(backlog: RunBacklog) -> None:
    """Free steps of the poor tenant, of another kind in the same pool and class, take every slot."""
    free = backlog.semaphore(1, permits=1_000)
    for number in range(1, 41):
        step = task(8_000 + number, ready_at=NOW - 400.0 + number)
        backlog.step(step, run=5_000 + number, tenant=POOR, needs={free: 1.0})
    reader = Reader(backlog)
    reader.fold(NOW)
    started = [start for plan in reader.plans(NOW) for start in plan.starts if start.lane.tenant == POOR]
    assert len(started) == SLOTS, "its turn comes first, and this work costs nothing"
