"""The page of one tenant: how its money stands, what it went on, and the forms that change what it may do."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound
from scheduler.live import tenant as standing
from scheduler.live import wording
from scheduler.live.audience import OWN
from scheduler.live.frames import Key
from scheduler.policy.books import TopUpRow
from scheduler.reads.money import BudgetDetail
from scheduler.reads.spending import AlertTold, RunOf, list_spenders, spending, story_of
from scheduler.reads.standings import tenant_with_budget
from scheduler.reads.tenants import TenantDetail
from scheduler.web import money_chart, tenant_words, times
from scheduler.web.access import EDIT_BUDGET, EDIT_TENANT, TOP_UP_BUDGET, VIEW_CONSOLE, may, named_by, needs, tenant_of
from scheduler.web.fields import with_faults
from scheduler.web.shell import missing, page
from scheduler.web.tenant_form import top_up_fields

BY: Final = ("model", "pool", "kind", "class")


@require_safe
@needs(VIEW_CONSOLE, own=named_by("slug"))
def tenant(request: HttpRequest, slug: str) -> HttpResponse:
    """One tenant. It is all that an account opens that is bound to it."""
    return tenant_page(request, slug)


def tenant_page(
    request: HttpRequest,
    slug: str,
    *,
    status: int = 200,
    fault: str = "",
    reason: str = "",
    top_up_errors: Sequence[FieldError] = (),
) -> HttpResponse:
    """The page of a tenant, after a refused action with the input kept and the faults beside it."""
    try:
        found, budget = tenant_with_budget(slug)
    except NotFound as missed:
        return no_such_tenant(request, slug, missed)
    bound = tenant_of(request) is not None
    story = story_of(found.id)
    fields, other = with_faults(top_up_fields(request.POST if top_up_errors else None), top_up_errors)
    spent = spending(budget.starts_at, min(budget.ends_at, budget.now), zone=budget.time_zone, tenant=found.id)
    suspended = found.status == "suspended"
    return page(
        request,
        "ops/tenant.html",
        title=slug,
        nav="tenants",
        live=Key(OWN if bound else "tenant", slug),
        status=status,
        tenant=found,
        suspended=suspended,
        bound=bound,
        looked=standing.When(times.clock(budget.now), wording.machine(budget.now)),
        zone=budget.time_zone,
        chart=money_chart.day_chart(spent),
        parts=money_chart.part_tables(spent, BY),
        total=spent.total,
        may_edit=may(request, EDIT_TENANT),
        may_budget=may(request, EDIT_BUDGET),
        may_top_up=may(request, TOP_UP_BUDGET),
        limit_facts=_limits(found),
        budget_facts=_budget_facts(budget),
        top_ups=[_top_up(row, budget, bound=bound) for row in story.top_ups],
        can_top_up=budget.limit is not None,
        alerts=[_alert(row, budget) for row in story.alerts],
        runs=[_run(row) for row in story.runs],
        fault=fault,
        reason=reason,
        top_up_fields=fields,
        top_up_faults=other,
        form=request.POST.get("form", "") if top_up_errors else secrets.token_urlsafe(12),
    )


def no_such_tenant(request: HttpRequest, slug: str, fault: NotFound) -> HttpResponse:
    """The page that says that there is no such tenant, or top-up, with names much like it."""
    alike = [row.slug for row in list_spenders(sort="slug", name=slug[:2]).rows]
    near = [name for name in get_close_matches(slug, alike, n=3, cutoff=0.5) if tenant_of(request) is None]
    return missing(request, fault.detail, near=near, near_at=reverse("ops:tenants"))


@dataclass(frozen=True, slots=True)
class TopUpLine:
    """A top-up as it is listed: `until` says when it ends or ended."""

    id: int
    amount: tenant_words.Amount
    until: str
    machine: str
    who: str
    in_force: bool


@dataclass(frozen=True, slots=True)
class StoryLine:
    """Something that came up, with its time and where it leads."""

    says: str
    at: str
    machine: str
    url: str = ""


def _limits(found: TenantDetail) -> list[tuple[str, str]]:
    """Weight and limits of its own, with what it uses of them."""
    quota, used = found.quota, wording.count
    running = ", no limit" if quota.max_in_flight is None else f" of {used(quota.max_in_flight)}"
    queued = ", no limit" if quota.max_queued is None else f" of {used(quota.max_queued)}"
    starts = "no limit"
    if quota.start_rate is not None:
        starts = f"{wording.amount(quota.start_rate)} per second, {wording.amount(quota.start_burst)} at once"
        starts += f", {wording.amount(found.start_level)} left now"
    run_cost = "no limit" if quota.max_cost_per_run_nano is None else wording.dollars(quota.max_cost_per_run_nano)
    return [
        ("Weight", f"{found.weight:g}"),
        ("Starts", starts),
        ("Running at once", f"{used(found.in_flight)}{running}"),
        ("Waiting", f"{used(found.queued)}{queued}"),
        ("A run’s steps", f"{quota.max_steps_per_run or 20}, {quota.max_width_per_run or 8} at once"),
        ("A run’s cost", run_cost),
    ]


def _budget_facts(budget: BudgetDetail) -> list[tuple[str, str]]:
    told = ", ".join(wording.percent(part) for part in sorted(budget.alert_at)) or "never"
    target = "none" if budget.success_target is None else wording.dollars(budget.success_target)
    return [
        ("Every month", "no limit" if budget.monthly is None else wording.dollars(budget.monthly)),
        ("Told at", told),
        ("Target per success", target),
    ]


def _top_up(row: TopUpRow, budget: BudgetDetail, *, bound: bool) -> TopUpLine:
    ended = row.ends_at if row.ended_at is None else row.ended_at
    at = standing.in_zone(ended, budget.time_zone)
    until = f"until {at.text}, {standing.ahead(ended, budget.now)}" if row.in_force else f"over since {at.text}"
    who = f"“{row.reason}”" if bound else f"{row.actor}: “{row.reason}”"
    return TopUpLine(row.id, tenant_words.amount(row.amount), until, at.machine, who, row.in_force)


def _alert(row: AlertTold, budget: BudgetDetail) -> StoryLine:
    at = standing.in_zone(row.at, budget.time_zone)
    of_run = row.scope == "run"
    says = (
        f"{f'Run {row.scope_id}' if of_run else 'The budget'} reached {wording.percent(row.threshold)}: "
        f"{wording.dollars(row.spent)} of {wording.dollars(row.limit)}"
    )
    return StoryLine(says, at.text, at.machine, reverse("ops:run", args=[row.scope_id]) if of_run else "")


def _run(row: RunOf) -> StoryLine:
    name = row.name or f"run {row.id}"
    spent = "" if not row.spent else f", {wording.dollars(row.spent)}"
    return StoryLine(
        f"{name}: {row.state}{spent}",
        times.clock(row.at),
        wording.machine(row.at),
        reverse("ops:run", args=[row.id]),
    )
