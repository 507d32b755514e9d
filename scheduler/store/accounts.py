"""Money as people look at it: budgets, prices, what was spent on what, and whether the books agree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from scheduler.policy.books import CostRow, PriceRow, PriceSettings
from scheduler.policy.types import BudgetId, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("money.sql")


class BudgetRow(NamedTuple):
    """A tenant's budget. `budget` None: its present period has not been begun; the last one ended at `after`.

    `limit` is in force now, top-ups (of which the first ends at `top_up_until`) included. `burn` is what the last
    minutes come to per hour, None while too little is known. Amounts in nano-dollars, times in Unix seconds.
    """

    tenant: TenantId
    slug: str
    time_zone: str
    version: int
    monthly: int | None
    alert_at: Sequence[float]
    success_target: int | None
    after: float | None
    budget: BudgetId | None
    limit: int | None
    spent: int | None
    reserved: int | None
    period_start: float | None
    period_end: float | None
    top_up: int | None
    top_up_until: float | None
    burn: float | None
    now: float


@asked
def load_budgets(*, tenant: TenantId | None = None, slugs: Sequence[str] | None = None) -> Question[list[BudgetRow]]:
    """Budgets by slug; of one tenant, of those of these slugs, or of all."""
    params = {"tenant": tenant, "slugs": None if slugs is None else list(slugs)}
    return Question(_SQL["read_budgets"], params, lambda rows: [BudgetRow(*row) for row in rows])


def edit_monthly(slug: str, *, version: int, limit: int | None, alert_at: Sequence[float], target: int | None) -> bool:
    """Change what a tenant may spend in a month; False when `version` is not the current one."""
    params = {
        "slug": slug,
        "version": version,
        "limit": limit,
        "alert_at": queries.array(alert_at),
        "target": target,
    }
    return queries.fetch_one(_SQL["edit_monthly"], params) is not None


def edit_period(budget: BudgetId, *, limit: int | None) -> None:
    """Change the limit of a period."""
    queries.run(_SQL["edit_period"], {"budget": budget, "limit": limit})


@asked
def load_task_cost(task: TaskId) -> Question[tuple[int, int, TenantId] | None]:
    """What a task may cost, needs at least, and whose it is; None when it costs nothing."""
    return Question(
        _SQL["read_task_cost"],
        {"task": task},
        lambda rows: (rows[0][0], rows[0][1], TenantId(rows[0][2])) if rows else None,
    )


def load_cost(
    by: Collection[str], *, starts: float, ends: float, tenant: TenantId | None, rows_max: int
) -> list[CostRow]:
    """What was spent in [starts, ends), by any of tenant, pool, kind, model; the total first, then the dearest.

    Reads the ledger itself; see `spending.load_cost_by`.
    """
    params = {
        **{f"by_{name}": name in by for name in ("tenant", "pool", "kind", "model")},
        "starts": starts,
        "ends": ends,
        "tenant": tenant,
        "rows_max": rows_max,
    }
    return [CostRow(*row) for row in queries.fetch(_SQL["read_cost"], params)]


class Drift(NamedTuple):
    """A budget that does not say what the ledger (`spent`) and the live leases (`reserved`) say."""

    budget: BudgetId
    scope: str
    scope_id: int
    said_spent: int
    said_reserved: int
    spent: int
    reserved: int


def load_drift(budgets: Collection[BudgetId] | None = None) -> list[Drift]:
    """Budgets that disagree with the books; of these, or of all."""
    params = {"budgets": None if budgets is None else queries.array(budgets)}
    return [Drift(*row) for row in queries.fetch(_SQL["read_drift"], params)]


def correct_budget(drift: Drift) -> None:
    """Let a budget say what the books say."""
    params = {"budget": drift.budget, "spent": drift.spent, "reserved": drift.reserved}
    queries.run(_SQL["correct_budget"], params)


def load_prices(*, price: int | None = None, model: str | None = None) -> list[PriceRow]:
    """Operators' prices by model; one of them, or all."""
    rows = queries.fetch(_SQL["read_prices"], {"price": price, "model": model})
    names = tuple(PriceSettings.__dataclass_fields__)
    return [PriceRow(row[0], PriceSettings(**dict(zip(names, row[1:-1], strict=True))), row[-1]) for row in rows]


def add_price(settings: PriceSettings) -> int | None:
    """Add a price; None when there is one of this model from that moment on."""
    row = queries.fetch_one(_SQL["add_price"], asdict(settings))
    return None if row is None else int(row[0])


def edit_price(price: int, *, version: int, settings: PriceSettings) -> bool:
    """Change a price; False when `version` is not the current one."""
    params = {"price": price, "version": version, **asdict(settings)}
    return queries.fetch_one(_SQL["edit_price"], params) is not None
