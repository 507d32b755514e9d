"""What the picture says of budgets that run out and of tasks that died lately."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import Alert, Budget, DeadGroup
from scheduler.store.troubles import load_recent_deaths, load_spent_budgets
from tests.support.work import make_pool, make_tenant

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


def budget(slug: str, spent: int, *, told_at: float = 0.8, days_left: int = 3) -> None:
    """A month of 100 nano-dollars of a new tenant, of which a part was told of."""
    tenant = make_tenant(slug)
    row = Budget.objects.create(
        scope="tenant",
        scope_id=tenant,
        period_start=NOW - timedelta(days=27),
        period_end=NOW + timedelta(days=days_left),
        limit_nano=100,
        spent_nano=spent,
    )
    Alert.objects.create(
        scope="tenant",
        scope_id=tenant,
        tenant_id=tenant,
        budget_id=row.pk,
        threshold=told_at,
        limit_nano=100,
        spent_nano=80,
    )


def test_budgets_are_named_while_they_are_spent_and_in_force_most_spent_first() -> None:
    budget("watched", 84)
    budget("over", 100)
    budget("topped-up-since", 70)
    budget("of-last-month", 99, days_left=-1)
    assert [(row.tenant, row.spent_nano, row.allowed_nano) for row in load_spent_budgets()] == [
        ("over", 100, 100),
        ("watched", 84, 100),
    ]


def test_a_budget_is_named_once_however_many_parts_were_told_of() -> None:
    budget("acme", 100)
    told = Alert.objects.get()
    Alert.objects.create(
        scope="tenant",
        scope_id=told.scope_id,
        tenant_id=told.tenant_id,
        budget_id=told.budget_id,
        threshold=1.0,
        limit_nano=100,
        spent_nano=100,
    )
    assert len(load_spent_budgets()) == 1


def test_deaths_are_named_while_they_are_fresh_the_most_numerous_first() -> None:
    pool, tenant = make_pool("llm"), make_tenant()
    for fingerprint, (number, ago_s) in enumerate([(3, 10), (31, 20), (500, 400), (0, 5)]):
        DeadGroup.objects.create(
            fingerprint=fingerprint,
            tenant_id=tenant,
            pool_id=pool,
            kind="chat",
            failure_class="invalid",
            shape="too long",
            n=number,
            first_at=NOW - timedelta(days=1),
            last_at=NOW - timedelta(seconds=ago_s),
        )
    assert [(row.pool, row.n, row.shape) for row in load_recent_deaths()] == [
        ("llm", 31, "too long"),
        ("llm", 3, "too long"),
    ]
