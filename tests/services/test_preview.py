"""Previews read the real backlog and change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from scheduler.errors import NotFound, Refused
from scheduler.policy.types import PoolId, PriorityClass, TenantId
from scheduler.services.forecast import renew_forecast
from scheduler.services.preview import preview_pool, preview_resource, preview_tenant
from scheduler.store import control
from tests.conftest import LiveDatabase
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

LEARNING_ROUNDS = 10


@pytest.fixture
def pool(live_database: LiveDatabase) -> PoolId:  # the rows are committed
    """A pool with a record of thirty starts, and forty tasks that wait for a bucket of one a second."""
    pool, tenant = make_pool(slots=4), make_tenant()
    make_bucket("openai", rate=1.0, burst=1.0)
    worker = HandWorker({pool: 40})
    memory = renew_forecast(None)
    submit_tasks(tenant, 30)
    while leased := worker.start():
        worker.succeed(leased)
    for _ in range(LEARNING_ROUNDS):
        memory = renew_forecast(memory)
    submit_tasks(tenant, 40, resources={"openai": 1.0})
    return pool


def contents() -> dict[str, Any]:
    """Every row of every table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        tables = [row[0] for row in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {connection.ops.quote_name(table)} t ORDER BY 1")
            found[table] = cursor.fetchall()
    return found


def test_a_preview_tells_the_waits_and_changes_nothing(pool: PoolId) -> None:
    seat = (pool, PriorityClass.NORMAL)
    before = contents()
    faster = preview_resource("openai", {"rate": 4.0}).preview.seats[seat]
    slower = preview_resource("openai", {"rate": 0.0}).preview.seats[seat]
    preview_pool("p", slots=1, paused=True)
    own = preview_tenant("acme", {}, suspended=True)
    assert contents() == before
    assert faster.before is not None
    assert faster.after is not None
    assert faster.before.p50_s == pytest.approx(40, rel=0.3)
    assert faster.after.p50_s < 0.5 * faster.before.p50_s
    assert slower.after is not None
    assert slower.after.p50_s == float("inf")
    assert list(own.preview.own) == [seat]
    assert own.pools[pool] == "p"


def test_without_a_record_it_says_that_it_does_not_know(live_database: LiveDatabase) -> None:
    pool = make_pool()
    submit_tasks(make_tenant(), 40)
    found = preview_pool("p", slots=20).preview
    assert found.unknown == {pool}
    assert found.seats == {}
    assert live_database.name


def test_what_cannot_be_is_refused(live_database: LiveDatabase) -> None:
    make_pool()
    make_bucket("openai", rate=1.0, burst=1.0)
    tenant: TenantId = make_tenant()
    with pytest.raises(Refused):
        preview_pool("p", slots=10_001)
    with pytest.raises(Refused):
        preview_resource("openai", {"permits": 3})
    with pytest.raises(Refused):
        preview_tenant("acme", {"weight": -1.0})
    with pytest.raises(NotFound):
        preview_pool("nope")
    with pytest.raises(NotFound):
        preview_resource("no\x00", {})
    with pytest.raises(NotFound):
        preview_tenant("nobody", {})
    assert tenant
    assert live_database.name


def test_the_reading_could_not_write(live_database: LiveDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    make_pool()
    promised: list[bool] = []
    promise = control.promise_not_to_write

    def noted() -> None:
        promise()
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            promised.append(cursor.fetchone() == ("on",))

    monkeypatch.setattr(control, "promise_not_to_write", noted)
    preview_pool("p")
    assert promised == [True]
    assert live_database.name
