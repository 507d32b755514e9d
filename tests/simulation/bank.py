"""The simulated world's money: budgets of tenants and runs, what is reserved, and the ledger of what was charged.

No reservation is lost, the ledger is what was spent, and nobody spends more than the most that was ever allowed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from scheduler.policy.budget import Account, charge
from scheduler.policy.charges import Ended, Pricing, began, bill
from scheduler.policy.prices import Asked, PriceTable, estimate, flat
from scheduler.policy.types import BudgetId, BudgetView, Outcome, Reservation, RunId, Start, TenantId
from tests.policy.run_backlog import RunBacklog
from tests.simulation.promises import promise

TABLE: PriceTable = flat(2_000_000_000, 10_000_000_000)


def price(input_tokens: int, output_tokens: int | None) -> tuple[int, int, Pricing]:
    """What such a call may cost at most and at least, and how that came about."""
    found = estimate(TABLE, Asked(input_tokens, 1, output_tokens), output_default=1_000)
    pricing = Pricing(most=found.most, table=TABLE, input_likely=1, output_most=found.output_most)
    return found.most, found.least, pricing


@dataclass(slots=True)
class Bank:
    """All budgets that there ever were. A limit that is lowered takes nothing back that was reserved under the old."""

    backlog: RunBacklog
    accounts: dict[BudgetId, Account] = field(default_factory=dict)
    of_tenant: dict[TenantId, BudgetId] = field(default_factory=dict)
    of_run: dict[RunId, BudgetId] = field(default_factory=dict)
    ledger: Counter[BudgetId] = field(default_factory=Counter)
    highest: dict[BudgetId, int | None] = field(default_factory=dict)

    def open(self, owner: TenantId | RunId, limit: int | None, *, of_run: bool = False) -> None:
        """Another budget for a tenant, as when a month begins, or one for a run."""
        budget = BudgetId(len(self.accounts) + 1)
        self.accounts[budget] = Account(BudgetView(budget, limit))
        self.highest[budget] = limit
        if of_run:
            self.of_run[RunId(owner)] = budget
        else:
            self.of_tenant[TenantId(owner)] = budget
        self._show(budget)

    def allow(self, budget: BudgetId, limit: int | None) -> None:
        """Let it have another limit: an edit, a top-up or the end of one."""
        most = self.highest[budget]
        self.highest[budget] = None if limit is None or most is None else max(most, limit)
        self.accounts[budget].limit = limit
        self._show(budget)

    def reserve(self, start: Start) -> None:
        """What the plan reserved."""
        held = start.reservation
        if held is None:
            return
        for budget in held.budgets:
            account = self.accounts[budget]
            account.reserved += held.amount
            most = self.highest[budget]
            used = account.spent + account.reserved
            promise(most is None or used <= most, f"budget {budget} has spent and reserved {used} of {most}")
            self._show(budget)

    def settle(
        self,
        held: Reservation | None,
        pricing: Pricing | None,
        outcome: Outcome,
        elapsed_s: float,
        usage: dict[str, int],
    ) -> None:
        """An attempt ended, however it did: bill it."""
        if held is None:
            return
        ended = Ended(outcome, began(outcome, None), elapsed_s, held.amount, pricing, None, None, usage or None)
        accounts = [self.accounts[budget] for budget in held.budgets]
        paid = charge(sum(line.cost for line in bill(ended)), reserved=held.amount, accounts=accounts)
        for budget in held.budgets:
            account = self.accounts[budget]
            self.ledger[budget] += paid
            most = self.highest[budget]
            promise(most is None or account.spent <= most, f"budget {budget} was charged {account.spent} of {most}")
            self._show(budget)

    def at_rest(self) -> None:
        """Nothing runs: nothing is reserved, and the books agree."""
        for budget, account in self.accounts.items():
            promise(account.reserved == 0, f"{account.reserved} are left reserved on budget {budget}")
            paid = self.ledger[budget]
            promise(account.spent == paid, f"budget {budget} has spent {account.spent}, its ledger says {paid}")

    def room(self, budget: BudgetId) -> int | None:
        """What is neither spent nor reserved."""
        return self._view(budget).headroom

    def _view(self, budget: BudgetId) -> BudgetView:
        account = self.accounts[budget]
        return BudgetView(budget, account.limit, account.spent, account.reserved)

    def _show(self, budget: BudgetId) -> None:
        """Let the planner see it, if it is in force."""
        tenants = self.backlog.tenants
        for tenant, current in self.of_tenant.items():
            if current == budget:
                tenants[tenant] = replace(tenants[tenant], budget=self._view(budget))
        for run, current in self.of_run.items():
            if current == budget:
                self.backlog.purses[run] = self._view(budget)
