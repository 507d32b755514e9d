"""What operators are told of tenants' money: burns, lists in their order, and what was spent on what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.live.board import read_board
from scheduler.models import Budget, BurnMark, Tenant
from scheduler.policy.pace import BudgetState
from scheduler.policy.types import TenantId
from scheduler.reads.money import budget_detail
from scheduler.reads.snapshot import latest_snapshot
from scheduler.reads.spending import PAGE_ROWS, list_spenders, spending
from scheduler.services.budgets import follow_burn
from scheduler.services.snapshot import take_snapshot
from tests.support.books import USD, make_budget, make_burn, make_entry
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def age(minutes: float) -> None:
    """Let the marks be this much older."""
    for mark in BurnMark.objects.all():
        by = timedelta(minutes=minutes)
        BurnMark.objects.filter(pk=mark.pk).update(old_at=mark.old_at - by, mid_at=mark.mid_at - by)


def spend(nano: int) -> None:
    Budget.objects.update(spent_nano=nano)


def burn() -> float | None:
    found = budget_detail("acme", None).burn
    return None if found is None else round(found / USD, 1)


def test_a_burn_is_what_the_last_minutes_come_to() -> None:
    make_budget(make_tenant(), limit=100 * USD, spent=5 * USD)
    assert burn() is None
    assert follow_burn() == 1
    assert burn() is None  # measured since a moment
    age(5)
    spend(6 * USD)
    assert burn() == 12.0  # 1 in 5 minutes
    assert follow_burn() == 1
    age(5)
    assert burn() == 6.0  # 1 in 10
    assert follow_burn() == 1  # what burnt is behind the mark now
    assert burn() == 0.0
    age(600)
    assert follow_burn() == 0  # nothing is written of a budget that rests
    spend(7 * USD)
    assert burn() == 6.0  # and it does not count for the hours of rest


def test_a_mark_goes_with_its_period() -> None:
    budget = make_budget(make_tenant(), limit=None, spent=USD)
    follow_burn()
    Budget.objects.filter(pk=budget.pk).update(period_end=timezone.now())
    follow_burn()
    assert not BurnMark.objects.exists()


def test_tenants_come_in_order_of_their_trouble() -> None:
    make_burn(make_budget(make_tenant("calm"), limit=1_000 * USD, spent=500 * USD), per_hour=0)
    make_burn(make_budget(make_tenant("fast"), limit=1_000 * USD, spent=100 * USD), per_hour=30 * USD)
    make_budget(make_tenant("spent"), limit=10 * USD, spent=10 * USD)
    make_budget(make_tenant("free"), limit=None, spent=900 * USD)
    make_tenant("new", monthly_budget_nano=USD)
    assert [row.slug for row in list_spenders().rows] == ["fast", "spent", "calm", "new", "free"]
    assert [row.slug for row in list_spenders(sort="burn").rows] == ["fast", "calm", "free", "new", "spent"]
    assert [row.slug for row in list_spenders(sort="spent").rows][:2] == ["free", "calm"]
    assert [row.slug for row in list_spenders(sort="slug", name="E").rows] == ["free", "new", "spent"]
    rows = {row.slug: row for row in list_spenders().rows}
    assert rows["spent"].state is BudgetState.BLOCKED
    assert rows["free"].left is None
    assert rows["fast"].runs_out_at == pytest.approx(rows["fast"].now + 30 * 3_600, abs=60)
    assert rows["calm"].runs_out_at is None
    assert rows["new"].limit == USD
    assert rows["fast"].projected == pytest.approx(300 * USD, rel=0.01)


def test_the_picture_has_those_who_burn_most() -> None:
    for n in range(7):
        make_burn(make_budget(make_tenant(f"t{n}"), limit=100 * USD, spent=90 * USD), per_hour=n * 6 * USD)
    take_snapshot(None, {}, interval_s=1.0)
    found = latest_snapshot()
    assert found is not None
    spending_now = read_board(found.seq, found.as_of, found.body).spending
    assert [row.tenant for row in spending_now.spenders] == ["t6", "t5", "t4", "t3", "t2"]
    assert {row.state for row in spending_now.spenders} == {"warned"}
    assert spending_now.burn == pytest.approx(21 * 6 * USD, rel=0.01)


def test_a_tenant_at_work_has_a_share_of_the_weights() -> None:
    pool = make_pool(slots=1)
    for slug, weight in (("acme", 3.0), ("globex", 1.0), ("idle", 6.0)):
        tenant = make_tenant(slug, weight=weight)
        if slug != "idle":
            submit_tasks(tenant, 2)
    HandWorker({pool: 1}).start()
    rows = {row.slug: row for row in list_spenders().rows}
    assert (rows["acme"].share, rows["globex"].share, rows["idle"].share) == (0.75, 0.25, None)
    assert sum(row.in_flight for row in rows.values()) == 1
    assert sum(row.waiting for row in rows.values()) == 3


@pytest.mark.parametrize("sort", ["slug", "spent", "risk"])
def test_pages_of_tenants_have_no_holes_and_nobody_twice(sort: str) -> None:
    Tenant.objects.bulk_create(Tenant(slug=f"t{n:03}") for n in range(2 * PAGE_ROWS + 7))
    for n in range(0, 2 * PAGE_ROWS, 3):
        make_budget(TenantId(Tenant.objects.get(slug=f"t{n:03}").pk), limit=100 * USD, spent=(n % 5) * USD)
    pages, after = [], ""
    while True:
        page = list_spenders(sort=sort, after=after)
        pages.append(page)
        if page.after is None:
            break
        after = page.after
    seen = [row.slug for page in pages for row in page.rows]
    assert len(seen) == len(set(seen)) == 2 * PAGE_ROWS + 7
    assert pages[0].before is None
    back = list_spenders(sort=sort, before=pages[2].before or "")
    assert [row.slug for row in back.rows] == [row.slug for row in pages[1].rows]
    back = list_spenders(sort=sort, before=back.before or "")
    assert [row.slug for row in back.rows] == [row.slug for row in pages[0].rows]
    assert back.before is None


@pytest.mark.parametrize("place", ["x", "nan:acme", "inf:acme", "1:", "1:\x00", ":"])
def test_a_place_that_is_none_is_the_beginning(place: str) -> None:
    make_tenant()
    assert [row.slug for row in list_spenders(after=place).rows] == ["acme"]


def test_spending_is_told_by_everything_at_once_and_a_success_counts_once() -> None:
    acme, globex, pool, other = make_tenant(), make_tenant("globex"), make_pool("llm"), make_pool("gpu")
    now = timezone.now()
    make_entry(acme, pool, 3 * USD, at=now - timedelta(days=1), lease_id=7)
    make_entry(acme, pool, USD, at=now - timedelta(days=1), lease_id=7, line=1, model=None)
    make_entry(acme, other, 2 * USD, outcome="waste", lease_id=8, line=1, model=None, priority=None)
    make_entry(globex, pool, 5 * USD, lease_id=9, priority=0)
    found = spending(now.timestamp() - 3 * 86_400, now.timestamp(), zone="UTC")
    assert (found.total.cost, found.total.waste, found.total.successes) == (11 * USD, 2 * USD, 2)
    assert found.total.per_success == 5_500_000_000
    assert [(p.what, p.cost // USD) for p in found.by["tenant"]] == [("acme", 6), ("globex", 5)]
    assert [(p.what, p.cost // USD) for p in found.by["pool"]] == [("llm", 9), ("gpu", 2)]
    assert [(p.what, p.cost // USD) for p in found.by["model"]] == [("m-1", 8), ("", 3)]
    assert [(p.what, p.cost // USD) for p in found.by["class"]] == [("critical", 5), ("normal", 4), ("", 2)]
    assert len(found.days) in {4, 5}
    assert sum(part.cost for _, part in found.days) == 11 * USD
    alone = spending(now.timestamp() - 3 * 86_400, now.timestamp(), zone="UTC", tenant=globex)
    assert (alone.total.cost, alone.cut) == (5 * USD, frozenset())


def test_days_are_those_of_the_zone_that_is_asked_for() -> None:
    tenant, pool = make_tenant(), make_pool("llm")
    at = timezone.now().replace(year=2026, month=11, day=29, hour=16, minute=30)
    make_entry(tenant, pool, USD, at=at)
    for zone, day in (("UTC", 29), ("Asia/Seoul", 30), ("Asia/Kathmandu", 29), ("America/Los_Angeles", 29)):
        found = spending(at.timestamp() - 86_400, at.timestamp() + 86_400, zone=zone, tenant=tenant)
        assert [each.day for each, part in found.days if part.cost] == [day], zone
