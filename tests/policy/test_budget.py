"""Budgets in plans and in settlements: never exceeded, and never in the way of what is free."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.budget import Account, BudgetVerdict, Purse, Treasury, charge
from scheduler.policy.plan import make_plan
from scheduler.policy.run_gates import RunView
from scheduler.policy.types import (
    BudgetId,
    BudgetView,
    DemandId,
    DemandView,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    RunId,
    TenantId,
    TenantView,
    WaitReason,
)
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait

ONE = TenantId(1)


def budget(limit: int | None, *, spent: int = 0, reserved: int = 0) -> BudgetView:
    return BudgetView(BudgetId(1), limit, spent, reserved, ends_at=1_000.0)


def plan_with(view: BudgetView | None, *costs: tuple[int, int]) -> Plan:
    """The plan of one tenant's tasks of these (cost, least) and this budget."""
    backlog = Backlog()
    backlog.pool()
    backlog.tenant(1)
    wait(backlog, *(task(n)._replace(cost=most, cost_min=least) for n, (most, least) in enumerate(costs, start=1)))
    snapshot = backlog.snapshot(10.0)
    tenants = {ONE: replace(snapshot.tenants.get(ONE, TenantView(ONE)), budget=view)}
    return make_plan(replace(snapshot, tenants={**snapshot.tenants, **tenants}))


def test_only_as_many_start_as_the_budget_pays_for() -> None:
    plan = plan_with(budget(30), *[(10, 10)] * 5)
    assert [start.reservation and start.reservation.amount for start in plan.starts] == [10, 10, 10]
    (hold,) = plan.holds
    assert (hold.reason, hold.look_again_at) == (WaitReason.TENANT_BUDGET, 1_000.0)


def test_the_last_start_gets_what_is_left_if_that_is_worth_it() -> None:
    plan = plan_with(budget(25), *[(10, 5)] * 5)
    assert [start.reservation.amount for start in plan.starts if start.reservation] == [10, 10, 5]
    assert all(start.reservation and start.reservation.capped for start in plan.starts)
    assert len(plan_with(budget(24), *[(10, 5)] * 5).starts) == 2


def test_without_a_limit_all_start_and_are_not_capped() -> None:
    plan = plan_with(budget(None, spent=10**15), (10, 10), (10, 10))
    assert [start.reservation for start in plan.starts] == [(10, (BudgetId(1),), False)] * 2


def test_nothing_that_costs_starts_without_a_budget_and_all_that_is_free_does() -> None:
    assert plan_with(None, (10, 1)).starts == ()
    assert len(plan_with(None, (0, 0), (0, 0)).starts) == 2
    assert [s.reservation for s in plan_with(budget(0), (0, 0)).starts] == [None]


def test_a_class_that_is_owed_its_share_waits_for_money_like_any_other() -> None:
    """Nothing is set aside for what could not start, and who has money goes in its class's turn."""
    backlog = Backlog()
    backlog.pool(slots=1)
    for number in (1, 2):
        backlog.tenant(number)
    poor = task(1)._replace(cost=10, cost_min=10)
    wait(backlog, poor, priority=PriorityClass.LOW)
    wait(backlog, task(2), priority=PriorityClass.LOW, tenant=2, needs={backlog.bucket(1, rate=1.0, burst=1.0): 1.0})
    wait(backlog, *(task(n) for n in range(3, 9)), priority=PriorityClass.HIGH)
    snapshot = backlog.snapshot(10.0)
    views = {**snapshot.tenants, ONE: replace(snapshot.tenants[ONE], budget=budget(0))}
    owed = {(snapshot.lanes[0].key.pool, PriorityClass.LOW): 5.0}
    plan = make_plan(replace(snapshot, tenants=views, credits=owed))
    assert [start.task for start in plan.starts] == [2]
    assert next(hold.reason for hold in plan.holds if hold.lane.tenant == ONE) is WaitReason.TENANT_BUDGET


def test_spent_and_reserved_are_told_apart() -> None:
    assert Purse(budget(10, reserved=6)).verdict(5) is BudgetVerdict.RESERVED
    assert Purse(budget(10, spent=6)).verdict(5) is BudgetVerdict.SPENT
    assert Purse(budget(10, spent=5)).verdict(5) is BudgetVerdict.OPEN
    assert Purse(budget(None)).verdict(5) is BudgetVerdict.OPEN
    treasury = Treasury({ONE: TenantView(ONE, budget=budget(0))})
    key = LaneKey(PoolId(1), PriorityClass.LOW, ONE, DemandId(1))
    assert treasury.keeps(key, task(1)) is None
    assert treasury.reserve(key, task(1)) is None
    assert Treasury({ONE: TenantView(ONE, budget=budget(None))}).limited() == set()


@given(
    st.integers(0, 1_000),
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 600)), max_size=30),
    st.randoms(use_true_random=False),
)
def test_whatever_attempts_cost_no_budget_is_exceeded(
    limit: int, attempts: list[tuple[int, int]], chance: object
) -> None:
    """Reserve and settle in any order, with costs beyond the reservation."""
    account = Account(budget(limit))
    open_: list[tuple[int, int]] = []
    for most, cost in attempts:
        purse = Purse(replace(account.view, spent=account.spent, reserved=account.reserved))
        if purse.verdict(most) is BudgetVerdict.OPEN:
            account.reserved += most
            open_.append((most, cost))
        if open_ and chance.random() < 0.5:  # type: ignore[attr-defined]  # a random.Random
            reserved, used = open_.pop(0)
            paid = charge(used, reserved=reserved, accounts=[account])
            assert min(used, reserved) <= paid <= used
        assert account.spent + account.reserved <= limit
    for reserved, used in open_:
        charge(used, reserved=reserved, accounts=[account])
    assert account.reserved == 0
    assert account.spent <= limit


def test_without_a_limit_everything_is_charged() -> None:
    account = Account(budget(None, reserved=5))
    assert charge(500, reserved=5, accounts=[account]) == 500
    assert (account.spent, account.reserved) == (500, 0)
    assert charge(7, reserved=0, accounts=[]) == 7


def test_what_was_reserved_may_be_used_after_the_limit_was_lowered() -> None:
    assert charge(80, reserved=100, accounts=[Account(budget(10, reserved=100))]) == 80


def run_verdict(view: BudgetView) -> tuple[WaitReason | None, set[RunId]]:
    """What a run with this money says to a step of it that costs 50 to 100, and which runs it ends."""
    steps = DemandView(DemandId(-1), (), priced=True, run=RunId(7))
    tenants = {ONE: TenantView(ONE, budget=BudgetView(BudgetId(2), None))}
    treasury = Treasury(tenants, {RunId(7): RunView(RunId(7), budget=view)}, {steps.id: steps})
    lane = LaneKey(PoolId(1), PriorityClass.NORMAL, ONE, steps.id)
    hold = treasury.keeps(lane, task(1)._replace(cost=100, cost_min=50))
    return (None if hold is None else hold.reason), treasury.broke


def test_a_run_waits_for_its_own_money_and_ends_when_that_is_spent() -> None:
    assert run_verdict(budget(100, spent=50)) == (None, set())
    assert run_verdict(budget(100, reserved=51)) == (WaitReason.RUN_BUDGET, set()), "it may come back"
    assert run_verdict(budget(100, spent=51)) == (WaitReason.RUN_BUDGET, {RunId(7)})
