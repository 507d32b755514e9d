"""Two hundred seeded worlds of budgets: plans reserve, attempts end in every way, limits are edited, months pass.

Played on the planner and the arithmetic of settlement, as the services call them: no overshoot, no reservation left
over, and a ledger that equals the projections.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

import pytest

from scheduler.policy.budget import Account, charge
from scheduler.policy.charges import Ended, Pricing, began, bill
from scheduler.policy.plan import make_plan
from scheduler.policy.prices import Asked, PriceTable, estimate, flat
from scheduler.policy.types import BudgetId, BudgetView, Outcome, PriorityClass, Reservation, Start, TaskId, TenantId
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait

SEEDS = 200
TABLE: PriceTable = flat(2_000, 10_000)
ENDS = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST, Outcome.CANCELLED, Outcome.RELEASED, Outcome.TIMED_OUT)


@dataclass(slots=True)
class World:
    """Tenants with budgets, and what was charged to each: the ledger that projections are compared with."""

    chance: Random
    backlog: Backlog = field(default_factory=Backlog)
    accounts: dict[BudgetId, Account] = field(default_factory=dict)
    current: dict[TenantId, BudgetId] = field(default_factory=dict)
    pricings: dict[TaskId, Pricing] = field(default_factory=dict)
    ledger: list[tuple[BudgetId, int]] = field(default_factory=list)
    highest: dict[BudgetId, int] = field(default_factory=dict)

    def open_period(self, tenant: TenantId) -> None:
        budget = BudgetId(len(self.accounts) + 1)
        limit = None if self.chance.random() < 0.1 else self.chance.randint(0, 400_000)
        self.accounts[budget] = Account(BudgetView(budget, limit))
        self.current[tenant] = budget
        self.highest[budget] = limit or 0

    def submit(self, number: int) -> None:
        asked = Asked(self.chance.randint(1, 5_000), 1, self.chance.choice([None, 10, 500]))
        found = estimate(TABLE, asked, output_default=1_000)
        free = self.chance.random() < 0.1
        view = task(number)._replace(cost=0 if free else found.most, cost_min=0 if free else found.least)
        tenant = self.chance.choice(list(self.current))
        wait(self.backlog, view, tenant=tenant, priority=self.chance.choice(list(PriorityClass)))
        self.pricings[view.id] = Pricing(most=found.most, table=TABLE, input_likely=1, output_most=found.output_most)

    def plan(self, now: float) -> None:
        snapshot = self.backlog.snapshot(now)
        tenants = {}
        for tenant, view in snapshot.tenants.items():
            account = self.accounts[self.current[tenant]]
            now_is = replace(account.view, limit=account.limit, spent=account.spent, reserved=account.reserved)
            tenants[tenant] = replace(view, budget=now_is)
        plan = make_plan(replace(snapshot, tenants=tenants))
        self.backlog.carry_out(plan)
        for start in plan.starts:
            for budget in _budgets(start.reservation):
                self.accounts[budget].reserved += start.reservation.amount if start.reservation else 0

    def end(self, start: Start) -> None:
        """One attempt ends: as it likes, and as dear as it likes."""
        self.backlog.end(start.task)
        outcome = self.chance.choice(ENDS)
        usage = {"input_uncached": self.chance.randint(0, 9_000), "output_visible": self.chance.randint(0, 2_000)}
        held = start.reservation
        lines = bill(
            Ended(
                outcome,
                began(outcome, None),
                self.chance.uniform(0.0, 30.0),
                held.amount if held else 0,
                self.pricings[start.task] if held else None,
                None,
                None,
                usage if self.chance.random() < 0.6 else None,
            )
        )
        accounts = [self.accounts[budget] for budget in _budgets(held)]
        paid = charge(sum(line.cost for line in lines), reserved=held.amount if held else 0, accounts=accounts)
        self.ledger.extend((budget, paid) for budget in _budgets(held))

    def edit(self) -> None:
        account = self.accounts[self.chance.choice(list(self.current.values()))]
        if account.limit is not None:
            account.limit = self.chance.randint(0, 500_000)
            self.highest[account.view.id] = max(self.highest[account.view.id], account.limit)

    def check(self) -> None:
        held: dict[BudgetId, int] = {}
        for start in self.backlog.running.values():
            for budget in _budgets(start.reservation):
                held[budget] = held.get(budget, 0) + (start.reservation.amount if start.reservation else 0)
        for budget, account in self.accounts.items():
            assert account.reserved == held.get(budget, 0), "a reservation leaked"
            assert account.spent == sum(paid for b, paid in self.ledger if b == budget), "ledger and projection differ"
            if account.limit is not None:
                assert account.spent + account.reserved <= self.highest[budget], "a budget was exceeded"


def _budgets(reservation: Reservation | None) -> tuple[BudgetId, ...]:
    return () if reservation is None else reservation.budgets


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_no_world_exceeds_a_budget_or_loses_a_reservation(first: int) -> None:
    for seed in range(first, first + 50):
        world = World(Random(f"money {seed}"))
        world.backlog.pool(slots=6)
        for number in range(1, world.chance.randint(2, 5)):
            world.open_period(world.backlog.tenant(number))
        for step in range(60):
            for number in range(world.chance.randint(0, 3)):
                world.submit(step * 10 + number + 1)
            world.plan(float(step))
            running = list(world.backlog.running.values())
            for start in world.chance.sample(running, world.chance.randint(0, len(running))):
                world.end(start)
            if world.chance.random() < 0.1:
                world.edit()
            if world.chance.random() < 0.05:
                world.open_period(world.chance.choice(list(world.current)))
            world.check()
        for start in list(world.backlog.running.values()):
            world.end(start)
        world.check()
        assert not any(account.reserved for account in world.accounts.values()), seed
