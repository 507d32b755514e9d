"""Services with real concurrency and real commits."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest
from django.db import connection, transaction

from scheduler.errors import Unavailable
from scheduler.models import Attempt, Demand, Lease, Task
from scheduler.policy.admission import Submission
from scheduler.policy.types import PriorityClass, TenantId
from scheduler.services.submit import Accepted, submit, submit_batch
from tests.support.work import HandWorker, make_bucket, make_pool, make_semaphore, make_tenant, submit_tasks

pytestmark = pytest.mark.usefixtures("live_database")

PLAIN = Submission(payload='{"n": 1}', pool="p")


def test_many_planners_at_once_start_nothing_twice_and_keep_every_limit() -> None:
    tenant, pool = make_tenant(), make_pool(slots=40)
    make_semaphore("door", 25)
    make_bucket("api", rate=0.001, burst=150.0)
    submit_tasks(tenant, 400, resources={"door": 1.0, "api": 1.0})
    workers = [HandWorker({pool: 20}) for _ in range(4)]
    over_limit: list[int] = []
    completed: list[int] = []

    def churn(worker: HandWorker) -> None:
        try:
            for _ in range(30):
                mine = worker.start()
                over_limit.append(Lease.objects.count())
                worker.succeed(mine)
                completed.extend(leased.task for leased in mine)
        finally:
            connection.close()

    threads = [threading.Thread(target=churn, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(over_limit) <= 25, "permits"
    assert max(Counter(completed).values()) == 1, "a task ran twice"
    started = Task.objects.exclude(state="ready").count()
    assert started <= 150 + 1, "grants beyond the burst"
    assert started == Attempt.objects.count() + Lease.objects.count()


def test_a_plan_is_all_or_nothing() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("api", rate=0.001, burst=5.0)
    submit_tasks(tenant, 5, resources={"api": 1.0})
    worker = HandWorker({pool: 10})
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE lease ADD CONSTRAINT no_more CHECK (false) NOT VALID")
    try:
        with pytest.raises(Exception, match="no_more"):
            worker.start()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE lease DROP CONSTRAINT no_more")
    assert set(Task.objects.values_list("state", "attempts")) == {("ready", 0)}
    assert len(worker.start()) == 5


def test_a_submission_goes_with_its_callers_transaction() -> None:
    tenant = make_tenant()
    make_pool()
    make_bucket("api", rate=5, burst=10)

    def and_fail() -> None:
        with transaction.atomic():
            submit(tenant, replace(PLAIN, resources={"api": 1.0}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        and_fail()
    assert not Task.objects.exists()
    accepted = submit(tenant, replace(PLAIN, resources={"api": 1.0}))
    assert Demand.objects.filter(pk=Task.objects.get(pk=accepted.id).demand_id).exists()


def test_one_key_from_many_threads_is_one_task() -> None:
    tenant = make_tenant()
    make_pool()
    answers: list[Accepted] = []

    def send(tenant: TenantId) -> None:
        try:
            answers.extend(submit_batch(tenant, [replace(PLAIN, key=f"k{n}") for n in range(20)]))
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(tenant,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Task.objects.count() == 20
    assert len({a.id for a in answers}) == 20
    assert sum(not a.duplicate for a in answers) == 20


def test_a_bound_holds_whoever_submits_at_the_same_time() -> None:
    tenants = [make_tenant("one"), make_tenant("two", max_queued=40)]
    make_pool(max_pending=150, slots=0)
    refused: list[str] = []

    def send(tenant: TenantId) -> None:
        try:
            for size in (1, 3, 2, 5, 1, 4, 7) * 3:
                try:
                    submit_batch(tenant, [PLAIN] * size)
                except Unavailable as error:
                    refused.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(tenants[n % 2],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_tenant = Counter(Task.objects.values_list("tenant_id", flat=True))
    assert Task.objects.count() == 150, "not one more, and no room left"
    assert by_tenant[tenants[1]] <= 40
    assert set(refused) == {"overloaded"}


def test_whoever_is_ended_for_others_makes_room_once() -> None:
    tenant = make_tenant()
    make_pool(max_pending=60, slots=0, overflow="shed_lowest")
    submit_tasks(tenant, 60, priority=PriorityClass.LOW)

    def send() -> None:
        try:
            for _ in range(10):
                submit_batch(tenant, [PLAIN] * 2)
        except Unavailable:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = Counter(Task.objects.values_list("state", flat=True))
    assert states["ready"] == 60
    assert Task.objects.filter(state="ready", priority=PriorityClass.LOW).count() == 0
