"""The page of what money went on: its sums, its range and grouping in the address, and the prices behind it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from scheduler.models import Pool, Price
from scheduler.policy.types import PoolId
from tests.support.books import USD, make_entry
from tests.support.work import make_tenant
from tests.web.conftest import SignIn
from tests.web.test_tenants import text


@pytest.fixture
def viewer(signed_in: SignIn) -> Client:
    return signed_in("viewer")


@pytest.fixture
def pool(db: None) -> PoolId:
    return PoolId(Pool.objects.create(name="llm", executor="llm").pk)


def test_cost_is_told_for_a_range_and_by_what_is_asked_for(viewer: Client, pool: PoolId) -> None:
    acme, globex = make_tenant(), make_tenant("globex")
    make_entry(acme, pool, 3 * USD, model="claude-3-5-haiku-latest")
    make_entry(acme, pool, USD, outcome="waste", model="nobody-knows-me")
    make_entry(globex, pool, 40 * USD, at=timezone.now() - timedelta(days=20), model="own-model")
    Price.objects.create(model="own-model", input_nano=USD, output_nano=5 * USD, valid_from=timezone.now())
    page = text(viewer, "/ops/cost/")
    assert all(word in page for word in ("$44.00", "$22.00", "acme", "globex", "Own price", "published", "days in UTC"))
    assert "nobody-knows-me: nobody has a price for it" in page
    week = text(viewer, "/ops/cost/?days=7&by=tenant")
    assert "$4.00" in week
    assert "globex" not in week
    assert "Kinds of task" not in week
    assert "/ops/cost/?days=7&amp;by=pool" in week
    alone = text(viewer, "/ops/cost/?tenant=globex")
    assert "$40.00" in alone
    assert "acme" not in alone


def test_an_address_that_means_nothing_means_the_usual(viewer: Client) -> None:
    page = text(viewer, "/ops/cost/?days=x&by=colour")
    assert "<b>30 days</b>" in page
    assert "Nothing was spent in this time." in page
    assert "There is no tenant" in text(viewer, "/ops/cost/?tenant=nobody", 404)


def test_cost_asks_little_however_much_was_spent(
    viewer: Client, pool: PoolId, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(30):
        make_entry(make_tenant(f"t{n}"), pool, USD, model=f"m-{n}", kind=f"k{n}")
    with django_assert_max_num_queries(12):
        page = text(viewer, "/ops/cost/")
    assert "The dearest; there are more." in page
