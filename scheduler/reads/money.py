"""Money as the API shows it: budgets of present periods, what was spent on what, alerts and prices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.books import AlertRow, CostRow, PriceRow
from scheduler.policy.budget_words import TaskCost
from scheduler.policy.pace import BudgetState, projected, runs_out_at, state_of
from scheduler.policy.periods import period_at
from scheduler.policy.types import BudgetId, BudgetView, TenantId
from scheduler.store import accounts, spending
from scheduler.store import alerts as alert_store
from scheduler.store.accounts import BudgetRow
from scheduler.store.dispatch import load_now

COST_ROWS_MAX: Final = 1_000
COST_BY: Final = ("tenant", "pool", "kind", "model")
COST_WINDOW_S: Final = 30 * 86_400.0
PAGE_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class BudgetDetail:
    """A tenant's budget in its present period, in nano-dollars; `limit` None: none. Times in Unix seconds.

    `projected` is what the period comes to if money goes on being spent as until now; `burn` what the last minutes come
    to per hour (None: too little is known), `runs_out_at` when nothing is left at it (None: not in this period).
    """

    slug: str
    version: int
    time_zone: str
    starts_at: float
    ends_at: float
    monthly: int | None
    limit: int | None
    spent: int
    reserved: int
    projected: int
    top_up: int
    top_up_until: float | None
    alert_at: tuple[float, ...]
    success_target: int | None
    state: BudgetState
    burn: float | None
    runs_out_at: float | None
    now: float

    @property
    def left(self) -> int | None:
        """What may still be reserved; None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.spent - self.reserved)


def list_budgets(only: TenantId | None) -> list[BudgetDetail]:
    """Budgets by tenant; `only` limits a caller to its own."""
    return [budget_of(row) for row in accounts.load_budgets(tenant=only)]


def budget_detail(slug: str, only: TenantId | None) -> BudgetDetail:
    """The budget of a tenant. Raises NotFound, also for one that the caller may not see."""
    rows = accounts.load_budgets(tenant=only, slugs=[slug]) if "\x00" not in slug else []
    if not rows:
        raise NotFound(f"There is no tenant {slug!r}.", code="unknown_tenant")
    return budget_of(rows[0])


def budget_of(row: BudgetRow) -> BudgetDetail:
    """How a budget stands at the moment it was read."""
    starts_at, ends_at = row.period_start, row.period_end
    if starts_at is None or ends_at is None:
        starts_at, ends_at = period_at(row.now, row.time_zone, after=row.after)
    limit = row.monthly if row.budget is None else row.limit
    spent, reserved = row.spent or 0, row.reserved or 0
    return BudgetDetail(
        slug=row.slug,
        version=row.version,
        time_zone=row.time_zone,
        starts_at=starts_at,
        ends_at=ends_at,
        monthly=row.monthly,
        limit=limit,
        spent=spent,
        reserved=reserved,
        projected=projected(spent=spent, reserved=reserved, starts_at=starts_at, ends_at=ends_at, now=row.now),
        top_up=row.top_up or 0,
        top_up_until=row.top_up_until,
        alert_at=tuple(row.alert_at),
        success_target=row.success_target,
        state=state_of(limit, spent=spent, reserved=reserved, alert_at=row.alert_at),
        burn=row.burn,
        runs_out_at=runs_out_at(
            limit, spent=spent, reserved=reserved, burn=row.burn or 0.0, ends_at=ends_at, now=row.now
        ),
        now=row.now,
    )


def cost_of_task(found: tuple[int, int, TenantId] | None, row: BudgetRow) -> TaskCost | None:
    """What a task may cost (`accounts.load_task_cost`) and the budget that pays for it; None when it costs nothing."""
    if found is None:
        return None
    most, least, _ = found
    limit = row.monthly if row.budget is None else row.limit
    budget = BudgetView(BudgetId(row.budget or 0), limit, row.spent or 0, row.reserved or 0, row.period_end)
    return TaskCost(most, least, budget)


@dataclass(frozen=True, slots=True)
class CostReport:
    """What was spent in [starts_at, ends_at): all of it, and by what was asked for, the dearest first."""

    starts_at: float
    ends_at: float
    total: CostRow
    rows: list[CostRow]
    targets: dict[str, int]


def cost_report(
    by: Collection[str], *, starts_at: float | None, ends_at: float | None, only: TenantId | None
) -> CostReport:
    """The report. Raises Refused for something that cost is not known by.

    By one thing at most it is read from sums by day, whatever the ledger has; by more from the ledger itself.
    """
    unknown = sorted(set(by) - set(COST_BY))
    if unknown:
        detail = f"Cost is known by {', '.join(COST_BY)}, not by {unknown[0]!r}."
        raise Refused(detail, code="bad_filter", errors=(FieldError(("by",), detail),))
    end = load_now() if ends_at is None else ends_at
    start = end - COST_WINDOW_S if starts_at is None else starts_at
    rows_max = COST_ROWS_MAX + 1
    if len(set(by)) > 1:
        rows = accounts.load_cost(by, starts=start, ends=end, tenant=only, rows_max=rows_max)
    else:
        one = next(iter(by), COST_BY[0])
        rows = spending.load_cost_by(one, starts=start, ends=ends_at, tenant=only, rows_max=rows_max)
    total = next(row for row in rows if row.total)
    targets = {row.slug: row.success_target for row in accounts.load_budgets(tenant=only) if row.success_target}
    return CostReport(start, end, total, [row for row in rows if not row.total] if by else [], targets)


def list_alerts(only: TenantId | None, *, before: int | None, rows_max: int) -> list[AlertRow]:
    """Alerts, newest first."""
    return alert_store.load_alerts(tenant=only, before=before, rows_max=rows_max)


def list_prices(model: str | None) -> list[PriceRow]:
    """Operators' prices, of one model or of all."""
    return accounts.load_prices(model=model)
