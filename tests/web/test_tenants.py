"""The pages of tenants: what they say, whom they show it, and how little they ask the database."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.models import Budget, Pool, Snapshot, Tenant
from scheduler.policy.types import PoolId, TenantId
from tests.support.books import USD, make_budget, make_burn, make_entry
from tests.support.work import make_tenant
from tests.web.conftest import SignIn


@pytest.fixture
def viewer(signed_in: SignIn) -> Client:
    return signed_in("viewer")


def text(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status, response.content.decode()[:300]
    return response.content.decode()


def test_the_list_says_who_is_in_trouble_first(viewer: Client) -> None:
    make_budget(make_tenant("spent"), limit=10 * USD, spent=10 * USD)
    make_burn(make_budget(make_tenant("fast"), limit=1_000 * USD, spent=100 * USD), per_hour=30 * USD)
    make_tenant("odd", name="<script>alert(1)</script>", status="suspended")
    page = text(viewer, "/ops/tenants/")
    assert "The budget of spent is spent: work that costs money waits." in page
    assert "At the present burn fast will run out before the period ends." in page
    assert page.index("/ops/tenants/fast/") < page.index("/ops/tenants/spent/")
    assert "gone in 1 d 6 h" in page or "gone in 1 d 5 h" in page
    assert all(word in page for word in ("Blocked", "Suspended", "$30.00", "$900.00", "10 %"))
    assert "<script>alert" not in page


def test_the_page_of_a_tenant_is_drawn_as_things_stand_and_its_frames_follow(
    viewer: Client, snapshot: Snapshot
) -> None:
    budget = make_budget(make_tenant("acme"), limit=10 * USD, spent=2 * USD)
    assert "$8.00" in text(viewer, "/ops/tenants/acme/")
    Budget.objects.filter(pk=budget.pk).update(spent_nano=10 * USD)
    page = text(viewer, "/ops/tenants/acme/")
    assert "Blocked" in page
    assert "100 % of the budget is spent" in page
    assert "Blocked" in text(viewer, "/ops/_live/tenant/?scope=acme")
    assert "could not be read" in text(viewer, "/ops/_live/tenant/?scope=nobody")


def test_the_list_is_found_in_and_says_when_it_is_empty(viewer: Client) -> None:
    assert "No tenant exists yet." in text(viewer, "/ops/tenants/")
    make_tenant("acme")
    make_tenant("globex", name="Globex Corp")
    page = text(viewer, "/ops/tenants/?q=corp&sort=slug")
    assert "/ops/tenants/globex/" in page
    assert "/ops/tenants/acme/" not in page
    assert "has “nobody” in its name" in text(viewer, "/ops/tenants/?q=nobody")
    assert "This page is empty." in text(viewer, "/ops/tenants/?sort=slug&after=0.0:zzz")
    assert "/ops/tenants/acme/" in text(viewer, "/ops/tenants/?sort=nonsense&after=x")


def test_pages_cost_the_same_however_much_there_is(
    viewer: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    Tenant.objects.bulk_create(Tenant(slug=f"t{n:03}") for n in range(60))
    pool = PoolId(Pool.objects.create(name="llm", executor="llm").pk)
    for tenant in Tenant.objects.all()[:30]:
        make_budget(TenantId(tenant.pk), limit=USD)
        make_entry(TenantId(tenant.pk), pool, USD)
    with django_assert_max_num_queries(12):
        page = text(viewer, "/ops/tenants/")
    assert page.count('role="row"') == 51
    with django_assert_max_num_queries(12):
        text(viewer, "/ops/tenants/t000/")


def test_a_tenant_says_how_it_stands_and_what_its_money_went_on(viewer: Client) -> None:
    tenant = make_tenant("acme", time_zone="Asia/Seoul")
    pool = PoolId(Pool.objects.create(name="llm", executor="llm").pk)
    make_burn(make_budget(tenant, limit=100 * USD, spent=90 * USD, reserved=2 * USD), per_hour=USD)
    make_entry(tenant, pool, 3 * USD)
    make_entry(tenant, pool, USD, outcome="waste")
    page = text(viewer, "/ops/tenants/acme/")
    assert all(word in page for word in ("Warned", "$90.00", "of $100.00", "$8.00", "$2.00 reserved", "$1.00"))
    assert "gone in 8 h" in page or "gone in 7 h 59 min" in page
    assert "Asia/Seoul" in page
    assert "$4.00" in page  # per success, waste included
    assert "m-1" in page


def test_a_tenant_that_is_not_there_has_those_alike_beside_it(viewer: Client) -> None:
    make_tenant("acme")
    assert "/ops/tenants/acme/" in text(viewer, "/ops/tenants/acne/", 404)
