"""The page of one tenant: how its money stands, what it went on, and the forms that change what it may do."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.live import wording
from scheduler.reads.money import BudgetDetail, budget_detail
from scheduler.reads.spending import list_spenders, spending
from scheduler.reads.tenants import TenantDetail, tenant_detail
from scheduler.web import money_chart, tenant_words
from scheduler.web.access import EDIT_BUDGET, EDIT_TENANT, TOP_UP_BUDGET, VIEW_CONSOLE, named_by, needs, tenant_of
from scheduler.web.shell import missing, page
from scheduler.web.task_story import Figure

BY: Final = ("model", "pool", "kind", "class")


@require_safe
@needs(VIEW_CONSOLE, own=named_by("slug"))
def tenant(request: HttpRequest, slug: str) -> HttpResponse:
    """One tenant. It is all that an account opens that is bound to it."""
    return tenant_page(request, slug)


def tenant_page(request: HttpRequest, slug: str, *, status: int = 200, **said: Any) -> HttpResponse:
    """The page of a tenant, after a refused action with the input kept and the faults beside it."""
    try:
        found, budget = tenant_detail(slug, None), budget_detail(slug, None)
    except NotFound as fault:
        alike = [row.slug for row in list_spenders(sort="slug", name=slug[:2]).rows]
        near = get_close_matches(slug, alike, n=3, cutoff=0.5)
        return missing(request, fault.detail, near=near, near_at=reverse("ops:tenants"))
    spent = spending(budget.starts_at, min(budget.ends_at, budget.now), zone=budget.time_zone, tenant=found.id)
    suspended = found.status == "suspended"
    return page(
        request,
        "ops/tenant.html",
        title=slug,
        nav="tenants",
        status=status,
        tenant=found,
        chip=tenant_words.chip_of(budget.state, suspended=suspended),
        sentence=tenant_words.sentence_of(budget.state, suspended=suspended),
        suspended=suspended,
        bound=tenant_of(request) is not None,
        looked=tenant_words.When(wording.clock_utc(budget.now), wording.machine(budget.now)),
        figures=_figures(found, budget),
        bar=tenant_words.bar_of(budget.limit, spent=budget.spent, reserved=budget.reserved),
        used=tenant_words.used_of(budget.limit, budget.spent),
        zone=budget.time_zone,
        chart=money_chart.day_chart(spent),
        parts=money_chart.part_tables(spent, BY),
        total=spent.total,
        may_edit=request.user.has_perm(EDIT_TENANT),
        may_budget=request.user.has_perm(EDIT_BUDGET),
        may_top_up=request.user.has_perm(TOP_UP_BUDGET),
        **said,
    )


def _figures(found: TenantDetail, budget: BudgetDetail) -> list[Figure]:
    resets = tenant_words.in_zone(budget.ends_at, budget.time_zone)
    limit = "no limit" if budget.limit is None else f"of {wording.dollars(budget.limit)}"
    top_up = f", {wording.dollars(budget.top_up)} of it topped up" if budget.top_up else ""
    burn = None if budget.burn is None else int(budget.burn)
    return [
        Figure("Spent", wording.dollars(budget.spent), f"{limit}{top_up}"),
        Figure("Left", wording.dollars(budget.left), f"{wording.dollars(budget.reserved)} reserved by what runs"),
        Figure("Burn per hour", wording.dollars(burn), _burn_says(budget)),
        Figure("Projected", wording.dollars(budget.projected), "the period, if it goes on as until now"),
        Figure("Running", wording.count(found.in_flight), f"{wording.count(found.queued)} waiting"),
        Figure("Resets", tenant_words.ahead(budget.ends_at, budget.now), resets.text),
    ]


def _burn_says(budget: BudgetDetail) -> str:
    if budget.burn is None:
        return "measured since less than a minute"
    if budget.left == 0:
        return "nothing is left"
    if budget.runs_out_at is not None:
        at = tenant_words.in_zone(budget.runs_out_at, budget.time_zone)
        return f"gone {tenant_words.ahead(budget.runs_out_at, budget.now)}: {at.text}"
    return "lasts to the end of the period" if budget.limit is not None else "over the last ten minutes"
