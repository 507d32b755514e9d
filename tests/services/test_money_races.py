"""Budgets with real concurrency and real commits: four engines, calls that end in every way, one budget for three."""

from __future__ import annotations

import threading
from random import Random

import pytest
from django.db import connection, transaction

from scheduler.models import Budget, Lease, LedgerEntry, Task, Tenant
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeasedTask, Outcome
from scheduler.services.changes import Author
from scheduler.services.reconcile import find_drift
from scheduler.services.settle import Report, reap, settle
from scheduler.services.top_ups import add_top_up, end_top_up
from tests.services.test_money import make_llm_pool, make_price, reserved_by, submit_calls, usage
from tests.support.waiting import wait_until
from tests.support.work import HandWorker, make_tenant

pytestmark = pytest.mark.usefixtures("live_database")

ENGINES = 4


def end(leased: LeasedTask, chance: Random) -> Report:
    """An end of any kind; some bill far more than was reserved."""
    lease = leased.lease
    cut = Failure(FailureClass.ERROR, "the stream was cut")
    return chance.choice(
        [
            Report(lease, Outcome.SUCCEEDED, usage=usage(chance.randint(0, 1_000))),
            Report(lease, Outcome.SUCCEEDED, usage=usage(50_000)),
            Report(lease, Outcome.FAILED, cut, usage=usage(100, source="estimated")),
            Report(lease, Outcome.FAILED, Failure(FailureClass.THROTTLED, "wait", 0.0)),
            Report(lease, Outcome.RELEASED),
            Report(lease, Outcome.TIMED_OUT, Failure(FailureClass.TIMEOUT, "late")),
        ]
    )


def test_four_engines_on_a_budget_for_three_never_exceed_it() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool(max_attempts=1)
    tasks = submit_calls(tenant, 50)
    limit = 3 * reserved_by(tasks[0])
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=limit)
    at_once: list[int] = []
    beyond: list[int] = []

    def engine(number: int) -> None:
        chance = Random(number)
        worker = HandWorker({pool: 50})
        try:
            for _ in range(12):
                mine = worker.start()
                at_once.append(Lease.objects.count())
                for leased in mine:
                    if chance.random() < 0.2:
                        # It dies: somebody finds the lease.
                        Lease.objects.filter(pk=leased.lease).update(expires_at="2000-01-01T00:00:00Z")
                        reap()
                    else:
                        settle([end(leased, chance)])
                budget = Budget.objects.get()
                beyond.append(budget.spent_nano + budget.reserved_nano - limit)
        finally:
            connection.close()

    threads = [threading.Thread(target=engine, args=(number,)) for number in range(ENGINES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(at_once) == 12 * ENGINES
    # Whole reservations: three at once. What little is left after cheap ends may let one more start, cut short.
    assert max(at_once) <= 12
    assert max(beyond) <= 0
    assert find_drift() == []
    budget = Budget.objects.get()
    assert budget.spent_nano <= limit
    assert budget.spent_nano == sum(LedgerEntry.objects.values_list("tenant_charge_nano", flat=True))
    assert budget.reserved_nano == sum(r or 0 for r in Lease.objects.values_list("reserved_nano", flat=True))


def test_of_fifty_calls_that_four_engines_want_exactly_three_run() -> None:
    """Each uses what it reserved to the nano-dollar, so the fourth never starts."""
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    tasks = submit_calls(tenant, 50)
    each = reserved_by(tasks[0])
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=3 * each)
    started: list[int] = []

    def engine() -> None:
        worker = HandWorker({pool: 50})
        try:
            for _ in range(6):
                for leased in worker.start():
                    started.append(leased.task)
                    settle([Report(leased.lease, Outcome.SUCCEEDED, usage=f'{{"cost_usd": "{each / 1e9:.9f}"}}')])
        finally:
            connection.close()

    threads = [threading.Thread(target=engine) for _ in range(ENGINES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 3
    assert Budget.objects.get().spent_nano == 3 * each
    assert Task.objects.filter(state="ready").count() == 47
    assert find_drift() == []


def test_an_ended_top_up_counts_for_no_plan_that_waited_for_its_end() -> None:
    """The plan read the budget with it; the budget's row, which the plan waits for, has it no more."""
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    per_call = reserved_by(submit_calls(tenant, 8)[0])
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=2 * per_call)
    worker, ada = HandWorker({pool: 50}), Author("ada", reason="a launch")
    assert len(worker.start()) == 2
    added = add_top_up("acme", 3 * per_call, ada, for_s=3_600.0)
    leased: list[LeasedTask] = []

    def plan() -> None:
        try:
            leased.extend(worker.dispatch().leased)
        finally:
            connection.close()

    planner = threading.Thread(target=plan)
    with transaction.atomic():
        end_top_up("acme", added.id, ada)
        planner.start()
        wait_until(_somebody_waits_for_a_row, what="the plan to wait for the budget")
    planner.join()
    assert leased == []
    budget = Budget.objects.get()
    assert budget.reserved_nano == 2 * per_call


def _somebody_waits_for_a_row() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype IN ('tuple', 'transactionid'))"
        )
        return bool(cursor.fetchone()[0])
