"""The breaker and the pace of a limit in dispatch and settlement: one probe, whatever becomes of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, connections

from scheduler.models import EventFresh, Lease, Resource, ResourceState
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeasedTask, Outcome, PoolId, TenantId, WaitReason
from scheduler.services.settle import Report, reap, settle
from tests.support.work import HandWorker, make_bucket, make_pool, make_semaphore, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db

PATIENT: dict[str, Any] = {"max_attempts": 9, "backoff_initial_s": 0.0}


def run_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def state(name: str = "api") -> ResourceState:
    return ResourceState.objects.get(resource__name=name)


def make_due() -> None:
    run_sql("UPDATE task SET due_at = now() - interval '1 second' WHERE state = 'retrying'")


def half_open() -> None:
    """Let the time pass until the breaker is tried again."""
    run_sql("UPDATE resource_state SET open_until = now() - interval '1 second' WHERE open_until IS NOT NULL")


def broken(*, tasks: int = 30, needs: dict[str, float] | None = None) -> tuple[TenantId, PoolId, HandWorker]:
    """A world whose provider failed ten times in a row; twenty tasks wait."""
    tenant, pool = make_tenant(), make_pool(slots=10, **PATIENT)
    make_bucket("api", rate=1_000.0, burst=1_000.0)
    submit_tasks(tenant, tasks, resources=needs or {"api": 1.0})
    worker = HandWorker({pool: 10})
    worker.fail(worker.start(), FailureClass.OVERLOADED)
    return tenant, pool, worker


def end(leased: LeasedTask, failure_class: FailureClass, *, outcome: Outcome = Outcome.FAILED) -> None:
    settle([Report(leased.lease, outcome, Failure(failure_class, "no"))])


def told() -> list[tuple[str, int | None, str]]:
    """Alerts in their order: the type, whose, of which limit."""
    return [(each.type, each.tenant_id, (each.data or {})["resource"]) for each in EventFresh.objects.order_by("id")]


def probe(worker: HandWorker) -> LeasedTask:
    """The only task that a half-open breaker lets through."""
    half_open()
    (leased,) = worker.start()
    assert state().probe_lease == leased.lease
    assert worker.start() == []
    return leased


def test_ten_failures_open_it_and_nothing_starts_or_spins() -> None:
    _, _, worker = broken()
    done = worker.dispatch()
    assert done.leased == ()
    assert done.look_again_at is not None
    assert 9.0 < done.look_again_at - done.now <= 10.0
    assert not done.again
    (hold,) = done.holds.values()
    assert hold.reason is WaitReason.BREAKER_OPEN


def test_work_that_does_not_need_it_goes_on() -> None:
    tenant, _, worker = broken()
    make_bucket("other", rate=100.0, burst=100.0)
    submit_tasks(tenant, 2, resources={"other": 1.0})
    submit_tasks(tenant, 2)
    assert len(worker.start()) == 4


def test_half_open_lets_one_through_whichever_worker_asks() -> None:
    _, pool, worker = broken()
    probe(worker)
    other = HandWorker({pool: 10})
    assert other.dispatch().leased == ()
    assert Lease.objects.count() == 1


def test_a_good_probe_closes_it() -> None:
    _, _, worker = broken()
    worker.succeed([probe(worker)])
    assert state().open_until is None
    assert len(worker.start()) == 10
    assert told() == [("alert.breaker_open", None, "api"), ("alert.breaker_closed", None, "api")]


def test_a_bad_probe_opens_it_for_longer() -> None:
    _, _, worker = broken()
    end(probe(worker), FailureClass.TIMEOUT, outcome=Outcome.TIMED_OUT)
    done = worker.dispatch()
    assert done.leased == ()
    assert done.look_again_at is not None
    assert 19.0 < done.look_again_at - done.now <= 20.0


@pytest.mark.parametrize("ending", ["throttled", "handed back", "cancelled", "lost", "deleted"])
def test_a_probe_that_says_nothing_makes_room_for_the_next(ending: str) -> None:
    _, _, worker = broken()
    leased = probe(worker)
    match ending:
        case "throttled":
            end(leased, FailureClass.THROTTLED)
            run_sql("UPDATE resource_state SET blocked_until = NULL")
        case "handed back":
            settle([Report(leased.lease, Outcome.RELEASED)])
        case "cancelled":
            settle([Report(leased.lease, Outcome.CANCELLED)])
        case "lost":
            run_sql("UPDATE lease SET expires_at = now() - interval '1 second'")
            assert reap() == 1
        case _:
            run_sql("DELETE FROM lease")
    assert state().open_until is not None
    (again,) = worker.start()
    assert again.lease != leased.lease
    assert worker.start() == []


def test_stragglers_of_before_neither_open_nor_close_it() -> None:
    tenant, pool = make_tenant(), make_pool(slots=30, **PATIENT)
    make_bucket("api", rate=1_000.0, burst=1_000.0)
    submit_tasks(tenant, 40, resources={"api": 1.0})
    worker = HandWorker({pool: 30})
    leased = worker.start()
    worker.fail(leased[:10], FailureClass.OVERLOADED)
    until = state().open_until
    assert until is not None
    worker.succeed(leased[10:15])
    assert state().open_until == until
    worker.succeed([probe(worker)])
    worker.fail(leased[15:], FailureClass.TIMEOUT)
    assert state().open_until is None


def test_throttled_calls_do_not_open_it() -> None:
    tenant, pool = make_tenant(), make_pool(slots=30, **PATIENT)
    make_bucket("api", rate=1_000.0, burst=1_000.0)
    submit_tasks(tenant, 20, resources={"api": 1.0})
    worker = HandWorker({pool: 30})
    worker.fail(worker.start(), FailureClass.THROTTLED)
    assert state().open_until is None


def test_a_healthy_provider_costs_no_write() -> None:
    tenant, pool = make_tenant(), make_pool(slots=30)
    make_bucket("api", rate=1_000.0, burst=1_000.0)
    submit_tasks(tenant, 20, resources={"api": 1.0})
    worker = HandWorker({pool: 30})
    leased = worker.start()
    before = ResourceState.objects.values().get()
    worker.succeed(leased)
    assert ResourceState.objects.values().get() == before


def test_a_semaphore_has_a_breaker_where_no_bucket_stands_for_the_provider() -> None:
    tenant, pool = make_tenant(), make_pool(slots=10, **PATIENT)
    make_semaphore("api", 10)
    submit_tasks(tenant, 30, resources={"api": 1.0})
    worker = HandWorker({pool: 10})
    worker.fail(worker.start(), FailureClass.OVERLOADED)
    worker.succeed([probe(worker)])
    assert len(worker.start()) == 10


def test_the_permits_of_a_database_are_not_to_blame_for_a_provider() -> None:
    make_semaphore("database", 10)
    broken(needs={"api": 1.0, "database": 1.0})
    assert state("api").open_until is not None
    assert state("database").open_until is None


@pytest.mark.django_db(transaction=True)
def test_two_engines_at_once_send_one_probe() -> None:
    _, pool, worker = broken()
    half_open()
    workers = [worker, HandWorker({pool: 10})]
    begin = threading.Barrier(2)

    def plan(mine: HandWorker) -> None:
        try:
            begin.wait(10)
            for _ in range(5):
                mine.dispatch()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=plan, args=(each,)) for each in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Lease.objects.count() == 1


def test_a_refused_call_shrinks_the_pace_once_per_round_trip() -> None:
    tenant, pool = make_tenant(), make_pool(slots=10, **PATIENT)
    make_bucket("api", rate=100.0, burst=100.0)
    submit_tasks(tenant, 10, resources={"api": 1.0})
    worker = HandWorker({pool: 10})
    leased = worker.start()
    worker.fail(leased[:3], FailureClass.THROTTLED)
    worker.fail(leased[3:6], FailureClass.THROTTLED)
    assert state().factor == pytest.approx(0.7)
    run_sql("UPDATE resource_state SET blocked_until = NULL")
    make_due()
    worker.fail(worker.start()[:1], FailureClass.THROTTLED)
    assert state().factor == pytest.approx(0.49)


def test_success_at_the_limit_lets_it_grow_again() -> None:
    tenant, pool = make_tenant(), make_pool(slots=10)
    make_bucket("api", rate=1.0, burst=100.0)
    submit_tasks(tenant, 10, resources={"api": 1.0})
    worker = HandWorker({pool: 10})
    leased = worker.start()
    run_sql(
        "UPDATE resource_state SET factor = 0.5, cut_at = now() - interval '11 s', paced_at = now() - interval '11 s'"
    )
    worker.succeed(leased[:5])
    assert state().factor == pytest.approx(0.55)
    worker.succeed(leased[5:])
    assert state().factor == pytest.approx(0.55)


def test_a_provider_that_wants_money_is_paused_once_and_the_task_is_given_up() -> None:
    tenant, pool = make_tenant(), make_pool(slots=10)
    make_bucket("api", rate=100.0, burst=100.0)
    submit_tasks(tenant, 12, resources={"api": 1.0})
    worker = HandWorker({pool: 10})
    leased = worker.start()
    end(leased[0], FailureClass.PROVIDER_BILLING)
    worker.fail(leased[1:], FailureClass.PROVIDER_BILLING)
    row = state()
    assert row.paused_at is not None
    assert (row.paused_by, "out of money" in row.pause_reason) == ("system", True)
    assert Resource.objects.get().version == 2
    done = worker.dispatch()
    assert done.leased == ()
    assert done.look_again_at is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), min(actor), min(source) FROM audit_event WHERE action = 'resource.pause'")
        assert cursor.fetchone() == (1, "system", "system")
        assert told() == [("alert.limit_paused", None, "api")]
        cursor.execute("SELECT count(*) FROM task WHERE state = 'dead_lettered'")
        assert cursor.fetchone() == (10,)
