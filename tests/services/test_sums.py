"""The sums of the ledger: that they are what the ledger says, whole, at any moment, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from django.core.management import call_command
from django.db import connections, transaction

from scheduler.models import LedgerEntry, SpendingDay, SpendingMark
from scheduler.policy.books import CostRow
from scheduler.policy.types import PoolId, TenantId
from scheduler.reads.money import COST_BY, cost_report
from scheduler.reads.spending import Spending, spending
from scheduler.services import summing
from scheduler.services.reconcile import find_discord
from scheduler.services.summing import sum_up
from scheduler.store.accounts import load_cost
from tests.support.books import USD, make_entry
from tests.support.work import make_pool, make_tenant

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONES = {"acme": "Asia/Seoul", "globex": "America/Los_Angeles", "initech": "UTC"}


def sum_up_all() -> None:
    """Sum up to the end, without waiting for what other tests have under way in the same server."""
    newest = LedgerEntry.objects.latest("id").pk
    for _ in range(100):
        sum_up()
        SpendingMark.objects.update(end_xid=0)
        if summed() == newest:
            return
    pytest.fail("it never ends")


def summed() -> int:
    return int(SpendingMark.objects.get().summed_id)


@pytest.fixture
def tenants(db: None) -> dict[str, TenantId]:
    """Three in three zones, with five days of entries of every kind."""
    pool, other = make_pool("llm"), make_pool("gpu")
    made = {slug: make_tenant(slug, time_zone=zone) for slug, zone in ZONES.items()}
    for hour in range(0, 120, 5):
        at = NOON - timedelta(hours=hour)
        for n, tenant in enumerate(made.values()):
            lease = 10**9 + 3 * hour + n
            outcome = "waste" if hour % 3 == 0 else "success"
            make_entry(tenant, pool, (n + 1) * USD, at=at, lease_id=lease, outcome=outcome, kind=f"k{hour % 4}")
            make_entry(tenant, other, 7, at=at, lease_id=lease, outcome=outcome, line=1, model=None, priority=None)
    return made


def look(tenants: dict[str, TenantId]) -> list[Spending]:
    """What pages show: of everybody and of each tenant, from midnights of its zone and from in between."""
    now = NOON.timestamp()
    found = [spending(datetime(2026, 11, day, tzinfo=UTC).timestamp(), now, zone="UTC") for day in (1, 17, 20)]
    for slug, tenant in tenants.items():
        found += [spending(now - hours * 3600, now, zone=ZONES[slug], tenant=tenant) for hours in (3, 31, 200)]
    return found


def test_pages_show_the_same_before_and_after(tenants: dict[str, TenantId], monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(tenants)
    assert before[0].total.cost == 24 * (6 * USD + 3 * 7)
    monkeypatch.setattr(summing, "ENTRIES_MAX", 10)
    seen = []
    for _ in range(8):
        sum_up()
        SpendingMark.objects.update(end_xid=0)
        seen.append(summed())
        assert look(tenants) == before
    assert len(set(seen)) > 3
    sum_up_all()
    assert look(tenants) == before
    assert find_discord() == []


WINDOWS = (
    (datetime(2026, 11, 1, tzinfo=UTC), None),
    (datetime(2026, 11, 17, 15, tzinfo=UTC), datetime(2026, 11, 19, 15, tzinfo=UTC)),
    (datetime(2026, 11, 17, tzinfo=UTC), datetime(2026, 11, 19, tzinfo=UTC)),
    (datetime(2026, 11, 17, 3, tzinfo=UTC), datetime(2026, 11, 18, 20, 30, tzinfo=UTC)),
    (datetime(2026, 11, 18, 1, tzinfo=UTC), datetime(2026, 11, 18, 14, tzinfo=UTC)),
)
"""From midnights in UTC and in Seoul, from and to hours in between, and within a day; None is now."""


def test_the_report_is_what_the_ledger_says(tenants: dict[str, TenantId], monkeypatch: pytest.MonkeyPatch) -> None:
    def in_the_ledger(by: str, starts: float, ends: float | None, only: TenantId | None) -> list[CostRow]:
        ends = NOON.timestamp() + 1 if ends is None else ends
        return load_cost([by], starts=starts, ends=ends, tenant=only, rows_max=100)

    def agree() -> bool:
        for (since, until), only, by in product(WINDOWS, (None, *tenants.values()), COST_BY):
            starts, ends = since.timestamp(), None if until is None else until.timestamp()
            said = cost_report([by], starts_at=starts, ends_at=ends, only=only)
            total, *rows = in_the_ledger(by, starts, ends, only)
            if said.total != total or sorted(said.rows, key=repr) != sorted(rows, key=repr):
                return False
        return True

    assert cost_report([], starts_at=0.0, ends_at=None, only=None).total.cost == 24 * (6 * USD + 3 * 7)
    monkeypatch.setattr(summing, "ENTRIES_MAX", 50)
    assert agree()
    for _ in range(4):
        sum_up()
        SpendingMark.objects.update(end_xid=0)
        assert agree()
    sum_up_all()
    assert agree()
    SpendingDay.objects.filter(scope_id=0, by="tenant", day="2026-11-18").delete()
    assert not agree()


def test_there_is_nothing_to_do_twice(tenants: dict[str, TenantId]) -> None:
    sum_up_all()
    before = list(SpendingDay.objects.order_by("pk").values())
    assert not sum_up()
    assert list(SpendingDay.objects.order_by("pk").values()) == before
    make_entry(tenants["acme"], PoolId(1), USD, at=NOON)
    assert sum_up()  # sets the end
    sum_up_all()


@pytest.mark.usefixtures("live_database")
class TestOthersWrite:
    """With transactions that are really under way beside."""

    @pytest.fixture
    def elsewhere(self) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(1) as thread:
            yield thread
            thread.submit(connections.close_all).result()

    def test_an_entry_that_becomes_visible_late_is_not_passed_over(self, elsewhere: ThreadPoolExecutor) -> None:
        tenant, pool = make_tenant(), make_pool()
        make_entry(tenant, pool, USD)
        slow = transaction.atomic()
        elsewhere.submit(slow.__enter__).result()
        elsewhere.submit(make_entry, tenant, pool, 2 * USD).result()
        make_entry(tenant, pool, 4 * USD)
        for _ in range(5):
            sum_up()
        assert summed() == 0
        assert spent(tenant) == 5 * USD
        elsewhere.submit(slow.__exit__, None, None, None).result()
        sum_up_all()
        assert SpendingDay.objects.filter(scope_id=0, by="kind").get().cost_nano == 7 * USD
        assert spent(tenant) == 7 * USD

    def test_a_database_that_was_restored_goes_on(self) -> None:
        tenant, pool = make_tenant(), make_pool()
        make_entry(tenant, pool, USD)
        assert sum_up()
        SpendingMark.objects.update(end_xid=2**62)
        sum_up()
        assert summed() == LedgerEntry.objects.latest("id").pk


def spent(tenant: TenantId) -> int:
    now = datetime.now(UTC)
    return spending((now - timedelta(days=2)).timestamp(), now.timestamp(), zone="UTC", tenant=tenant).total.cost


def test_sums_that_are_wrong_are_found_and_made_again(
    tenants: dict[str, TenantId], capsys: pytest.CaptureFixture[str]
) -> None:
    sum_up_all()
    before = look(tenants)
    row = SpendingDay.objects.filter(scope_id=tenants["acme"], by="model").first()
    assert row is not None
    SpendingDay.objects.filter(pk=row.pk).update(cost_nano=1)
    SpendingDay.objects.filter(scope_id=0, by="pool", day="2026-11-18").delete()
    assert [each.what for each in find_discord()] == ["2026-11-18", "acme"]
    with pytest.raises(SystemExit):
        call_command("reconcile")
    assert "2026-11-18" in capsys.readouterr().out
    call_command("reconcile", "--repair")
    assert look(tenants) == before
    sum_up_all()
    assert find_discord() == []
    assert look(tenants) == before
