"""Budgets, prices, what was spent on what, and alerts over REST."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from scheduler.api.access import ADMIN, READ, caller_of
from scheduler.api.answers import In, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Moment, Problem, Text
from scheduler.api.money_schemas import (
    AlertsOut,
    BudgetEditIn,
    BudgetOut,
    BudgetsOut,
    CostReportOut,
    PriceEditIn,
    PriceIn,
    PriceOut,
    PricesOut,
    present_alert,
    present_budget,
    present_cost,
    present_price,
)
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.engine.doorbell import ring
from scheduler.reads.money import (
    COST_BY,
    PAGE_MAX,
    budget_detail,
    cost_report,
    list_alerts,
    list_budgets,
    list_prices,
)
from scheduler.reads.tasks import ID_MAX
from scheduler.services.budgets import edit_budget
from scheduler.services.price_list import add_price, edit_price

router = Router(tags=["money"])


@router.get("/budgets", auth=READ, operation_id="list_budgets", response={200: BudgetsOut, PROBLEMS: Problem})
@in_pool
def get_budgets(request: HttpRequest) -> HttpResponse:
    """The budgets of the tenants that the token may see, in their present periods."""
    found = list_budgets(caller_of(request).tenant_id)
    return respond(200, BudgetsOut(budgets=[present_budget(each) for each in found]))


@router.get(
    "/tenants/{slug}/budget", auth=READ, operation_id="get_budget", response={200: BudgetOut, PROBLEMS: Problem}
)
@in_pool
def get_budget(request: HttpRequest, slug: str) -> HttpResponse:
    """What a tenant may spend in its present period, and what of it is spent and reserved."""
    return respond(200, present_budget(budget_detail(slug, caller_of(request).tenant_id)))


@router.patch(
    "/tenants/{slug}/budget", auth=ADMIN, operation_id="edit_budget", response={200: BudgetOut, PROBLEMS: Problem}
)
@in_pool
def patch_budget(request: HttpRequest, slug: str, body: BudgetEditIn) -> HttpResponse:
    """Change a tenant's limit, alerts, top-up or target. What waits for money looks again at once."""
    edit_budget(slug, body.version, body.changes(), actor=caller_of(request).actor, reason=body.reason, source="api")
    ring()
    return respond(200, present_budget(budget_detail(slug, None)))


class PriceQuery(In):
    """Which prices."""

    model: Text | None = None


@router.get("/prices", auth=READ, operation_id="list_prices", response={200: PricesOut, PROBLEMS: Problem})
@in_pool
def get_prices(request: HttpRequest, query: Query[PriceQuery]) -> HttpResponse:
    """Operators' prices; they go before published ones."""
    model = query.model if query.model is None or "\x00" not in query.model else ""
    return respond(200, PricesOut(prices=[present_price(row) for row in list_prices(model)]))


@router.post("/prices", auth=ADMIN, operation_id="add_price", response={201: PriceOut, PROBLEMS: Problem})
@in_pool
def post_price(request: HttpRequest, body: PriceIn) -> HttpResponse:
    """Say what a model costs, from a time on. A price of 0 makes it free: it passes no budget."""

    def act() -> tuple[int, PriceOut]:
        actor = caller_of(request).actor
        return 201, present_price(add_price(body.settings(), actor=actor, reason=body.reason, source="api"))

    return once_per_key(request, act, rings=False)


@router.patch("/prices/{price_id}", auth=ADMIN, operation_id="edit_price", response={200: PriceOut, PROBLEMS: Problem})
@in_pool
def patch_price(request: HttpRequest, price_id: int, body: PriceEditIn) -> HttpResponse:
    """Change a price or its validity. What was charged stays as it was."""
    price = price_id if 0 < price_id <= ID_MAX else 0
    actor = caller_of(request).actor
    row = edit_price(price, body.version, body.changes(), actor=actor, reason=body.reason, source="api")
    return respond(200, present_price(row))


class CostQuery(In):
    """By what, and from when to when."""

    by: Text = Field("", description=f"Any of {', '.join(COST_BY)}, with commas between")
    from_: Moment | None = Field(None, alias="from", description="Thirty days before `to` unless you say")
    to: Moment | None = Field(None, description="Now unless you say")


@router.get("/cost", auth=READ, operation_id="get_cost", response={200: CostReportOut, PROBLEMS: Problem})
@in_pool
def get_cost(request: HttpRequest, query: Query[CostQuery]) -> HttpResponse:
    """What was spent, how much of it was waste, and what a success came to."""
    caller = caller_of(request)
    found = cost_report(
        [name.strip() for name in query.by.split(",") if name.strip()],
        starts_at=None if query.from_ is None else query.from_.timestamp(),
        ends_at=None if query.to is None else query.to.timestamp(),
        only=caller.tenant_id,
    )
    return respond(200, present_cost(found, caller.tenant_slug))


class AlertQuery(In):
    """Which alerts."""

    before: Annotated[int, Field(ge=1, le=ID_MAX)] | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


@router.get("/alerts", auth=READ, operation_id="list_alerts", response={200: AlertsOut, PROBLEMS: Problem})
@in_pool
def get_alerts(request: HttpRequest, query: Query[AlertQuery]) -> HttpResponse:
    """Budgets that reached a threshold, newest first."""
    rows = list_alerts(caller_of(request).tenant_id, before=query.before, rows_max=query.limit)
    more = rows[-1].id if len(rows) == query.limit else None
    return respond(200, AlertsOut(alerts=[present_alert(row) for row in rows], next_before=more))
