"""Decides whether a budget lets an attempt start, with how much reserved, and what of its cost is charged to it.

`limit − spent − reserved` is what is left. A start reserves at most that, so what is spent and reserved together never
exceeds the limit; an end replaces its reservation by what was used, never by more than it and what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

from scheduler.policy.types import (
    BudgetView,
    Hold,
    LaneKey,
    Reservation,
    TaskView,
    TenantId,
    TenantView,
    WaitReason,
)

if TYPE_CHECKING:
    from scheduler.policy.run_gates import RunView
    from scheduler.policy.types import DemandId, DemandView, RunId


class BudgetVerdict(Enum):
    """What a budget says to a start."""

    OPEN = auto()
    """It may start."""
    RESERVED = auto()
    """Others have reserved what it needs: it may start when they have used less."""
    SPENT = auto()
    """What it needs is spent: only another limit or another period lets it start."""


class Purse:
    """What a budget still allows while a plan draws on it."""

    __slots__ = ("alone", "ends_at", "headroom", "id", "unspent")

    def __init__(self, view: BudgetView) -> None:
        self.id = view.id
        self.alone = (view.id,)
        self.ends_at = view.ends_at
        self.headroom = view.headroom
        self.unspent = None if view.limit is None else view.limit - view.spent

    def is_open(self, least: int) -> bool:
        """Whether it lets a task start that needs at least this."""
        return self.headroom is None or self.headroom >= least

    def verdict(self, least: int) -> BudgetVerdict:
        """What it says to a task that needs at least this."""
        if self.is_open(least):
            return BudgetVerdict.OPEN
        assert self.unspent is not None  # noqa: S101 - both or neither
        return BudgetVerdict.RESERVED if self.unspent >= least else BudgetVerdict.SPENT

    def take_up_to(self, amount: int) -> int:
        """Reserve this, or all that is left when that is less; how much."""
        if self.headroom is None:
            return amount
        taken = min(amount, self.headroom)
        self.headroom -= taken
        return taken


class Treasury:
    """The budgets that a plan draws on, tenants' and runs'. `broke` are runs that cannot pay for their next step."""

    def __init__(
        self,
        tenants: Mapping[TenantId, TenantView],
        runs: Mapping[RunId, RunView] | None = None,
        demands: Mapping[DemandId, DemandView] | None = None,
    ) -> None:
        self.of_tenant = {t.id: Purse(t.budget) for t in tenants.values() if t.budget is not None}
        self.of_run = {r.id: Purse(r.budget) for r in (runs or {}).values() if r.budget is not None}
        self.broke: set[RunId] = set()
        self._demands = demands or {}

    def limited(self) -> set[TenantId]:
        """Tenants whose budget may keep them back."""
        return {tenant for tenant, purse in self.of_tenant.items() if purse.headroom is not None}

    def _run_of(self, key: LaneKey) -> RunId | None:
        """The run whose money its tasks spend too, if it has some."""
        return self._demands[key.demand].run if self.of_run else None

    def keeps(self, key: LaneKey, head: TaskView) -> Hold | None:
        """Why its budgets do not let this head start; None when they do, or when it is free.

        What costs money and has no budget waits for one to be opened: nothing starts unreserved.
        """
        if head.cost <= 0:
            return None
        run = self._run_of(key)
        own = None if run is None else self.of_run.get(run)
        if own is not None and not own.is_open(head.cost_min):
            if own.verdict(head.cost_min) is BudgetVerdict.SPENT and run is not None:
                self.broke.add(run)
            return Hold(key, WaitReason.RUN_BUDGET)
        purse = self.of_tenant.get(key.tenant)
        if purse is None:
            return Hold(key, WaitReason.TENANT_BUDGET)
        return None if purse.is_open(head.cost_min) else Hold(key, WaitReason.TENANT_BUDGET, purse.ends_at)

    def reserve(self, key: LaneKey, head: TaskView) -> Reservation | None:
        """Reserve for a head that may start: what it may cost at most, or less when less is left. None: not priced."""
        if head.cost <= 0:
            return None
        run = self._run_of(key)
        own = None if run is None else self.of_run.get(run)
        purse = self.of_tenant[key.tenant]
        if own is None:
            amount = purse.take_up_to(head.cost)
            return Reservation(amount, purse.alone, purse.headroom is not None)
        purses = [purse, own]
        rooms = [purse.headroom for purse in purses if purse.headroom is not None]
        amount = min([head.cost, *rooms])
        for purse in purses:
            purse.take_up_to(amount)
        return Reservation(amount, tuple(purse.id for purse in purses), capped=bool(rooms))


class Account:
    """A locked budget while ends of attempts are charged to it, one after the other."""

    __slots__ = ("limit", "reserved", "spent", "view")

    def __init__(self, view: BudgetView) -> None:
        self.view = view
        self.limit = view.limit
        self.spent = view.spent
        self.reserved = view.reserved

    def allows(self, reserved: int) -> int | None:
        """The most that may be charged for an attempt that had reserved this; None without a limit.

        What was reserved may be used, also when the limit was lowered meanwhile.
        """
        if self.limit is None:
            return None
        return max(reserved, self.limit - self.spent - self.reserved + reserved)

    def settle(self, *, reserved: int, charged: int) -> None:
        """Replace a reservation by a charge."""
        self.reserved -= reserved
        self.spent += charged


def charge(cost: int, *, reserved: int, accounts: Iterable[Account]) -> int:
    """What of a cost is charged, and book it: all of it, as far as every budget allows."""
    found = list(accounts)
    charged = min([cost, *(most for account in found if (most := account.allows(reserved)) is not None)])
    for account in found:
        account.settle(reserved=reserved, charged=charged)
    return charged
