"""Caps with real engines that are killed: no budget is exceeded, no reservation stays, and what was killed stays so."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from scheduler.models import Attempt, Budget, Lease, Task
from scheduler.policy.admission import RetrySettings
from scheduler.policy.runs import Asked
from scheduler.policy.types import TaskId
from scheduler.reads.why import why
from scheduler.services.budgets import edit_budget
from scheduler.services.kill import kill_run
from scheduler.services.reconcile import find_drift
from scheduler.services.runs import create_run
from tests.acceptance import handlers
from tests.acceptance.site import Site, worker_of
from tests.services.test_money import check_projections, make_price, reserved_by
from tests.support.processes import Running
from tests.support.provider import RunningProvider, running_provider
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.acceptance
TTL_S = 1.5
PAID_FOR = 3
CALL_S = 3


@pytest.fixture
def provider() -> Iterator[RunningProvider]:
    """A provider whose answers take as long as the call says."""
    with running_provider(extra=("--scripted",)) as running:
        yield running


def stopped_in_a_call(engines: list[Running]) -> Running | None:
    """An engine that was stopped while a call was under way: what it holds now, it will never report."""
    young = Lease.objects.filter(picked_up=True, started_at__gt=Now() - timedelta(seconds=CALL_S - 1))
    for program in engines:
        worker = worker_of(program)
        program.process.send_signal(signal.SIGSTOP)
        if worker is not None and young.filter(worker_id=worker.pk).exists():
            return program
        program.process.send_signal(signal.SIGCONT)
    return None


def is_spent_out() -> bool:
    """Whether nothing runs, and what is left pays for no start."""
    budget, least = Budget.objects.get(), Task.objects.values_list("cost_min_nano", flat=True)[0]
    left = (budget.limit_nano or 0) - budget.spent_nano
    return budget.reserved_nano == 0 and left < (least or 0)


def check_at_one_moment() -> None:
    """The same while engines go on: what is compared was so at the same time."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        check_projections()


def test_fifty_calls_with_money_for_three_and_an_engine_that_is_killed_in_the_middle(
    site: Site, provider: RunningProvider
) -> None:
    make_price("sim-small")
    make_pool("llm", executor="llm", slots=50, lease_ttl_s=TTL_S, config={"base_url": provider.base_url})
    # Nothing starts on as good as nothing.
    tenant = make_tenant(monthly_budget_nano=1)
    # So short an answer is not cut any shorter: what is left pays for a whole call, or for none.
    call = {"model": "sim-small", "max_tokens": 16}
    message = {"role": "user", "content": f"[takes {CALL_S} s, 100 tokens in, 16 out] Think."}
    payload, at_once = json.dumps({**call, "messages": [message]}), RetrySettings(initial_backoff_s=0.0)
    with site.engines(2) as engines:
        tasks = submit_tasks(tenant, 50, pool="llm", payload=payload, retry=at_once)
        edit_budget("acme", 1, {"limit": PAID_FOR * reserved_by(tasks[0])}, actor="ada")
        wait_until(lambda: provider.stats(arrivals=False)["requests"] >= PAID_FOR, what="three calls")
        check_at_one_moment()
        doomed = wait_until(lambda: stopped_in_a_call(engines), what="an engine with a call")
        assert doomed is not None
        doomed.kill()
        wait_until(lambda: Attempt.objects.filter(outcome="lost").exists(), what="the loss to be seen")
        check_at_one_moment()
        wait_until(is_spent_out, timeout_s=120, what="the money to be gone")
        waiting = TaskId(Task.objects.filter(state="ready").values_list("pk", flat=True)[0])
        assert "tenant_budget" in {each.code for each in why(waiting, tenant).reasons}
    check_projections()
    budget = Budget.objects.get()
    assert (budget.reserved_nano, find_drift()) == (0, [])
    assert 0 < budget.spent_nano <= PAID_FOR * reserved_by(tasks[0])
    assert PAID_FOR <= provider.stats(arrivals=False)["requests"] <= Attempt.objects.count()
    assert Task.objects.filter(state="ready").count() >= len(tasks) - Attempt.objects.count()


def test_a_killed_run_stays_dead_when_its_engine_dies_with_it_and_another_comes(site: Site, tmp_path: Path) -> None:
    written = tmp_path / "runs"
    site.variables[handlers.RUNS] = str(written)
    make_pool(slots=8, lease_ttl_s=TTL_S, max_attempts=9, config={"handler": f"{handlers.__name__}:endless"})
    tenant = make_tenant()
    run = create_run(tenant, "{}", asked=Asked(max_width=2)).id
    steps = submit_tasks(tenant, 6, run=run, retry=RetrySettings(initial_backoff_s=0.0))
    with site.engine() as engine:
        wait_until(lambda: len(handlers.runs(written)) == 2, what="two steps to begin")
        engine.kill()
    assert kill_run(run, tenant, actor="ada", reason="it loops").told == 2
    (other,) = submit_tasks(tenant)
    with site.engine():
        wait_until(lambda: not Task.objects.exclude(pk=other).exclude(state="cancelled").exists())
        wait_until(lambda: any(run.task == other for run in handlers.runs(written)), what="other work to begin")
    began = [each.task for each in handlers.runs(written)]
    assert sorted(began) == [*steps[:2], other], "no step began again, nor did one that had waited"
    assert set(Attempt.objects.filter(task_id__in=steps).values_list("number", flat=True)) == {1}


def test_nothing_of_a_killed_run_starts_anywhere_from_the_kill_on(site: Site, tmp_path: Path) -> None:
    """Two engines in the middle of many steps; those that would never end are told."""
    written = tmp_path / "runs"
    site.variables[handlers.RUNS] = str(written)
    make_pool(slots=8, lease_ttl_s=60.0, config={"handler": f"{handlers.__name__}:short"})
    make_pool("long", slots=4, lease_ttl_s=60.0, config={"handler": f"{handlers.__name__}:endless"})
    tenant = make_tenant()
    run = create_run(tenant, "{}", asked=Asked(max_width=10, max_steps=302)).id
    endless = submit_tasks(tenant, 2, run=run, pool="long")
    steps = submit_tasks(tenant, 300, run=run, payload="7")
    with site.engines(2):
        wait_until(lambda: Lease.objects.filter(task_id__in=endless, picked_up=True).count() == 2)
        wait_until(lambda: Attempt.objects.filter(task_id__in=steps).count() >= 20, what="steps to end")
        told = kill_run(run, tenant, actor="ada", reason="it loops").told
        killed_at = _database_time()
        (other,) = submit_tasks(tenant, payload="7")
        wait_until(lambda: not Lease.objects.filter(task_id__in=[*steps, *endless]).exists(), what="its steps to stop")
        wait_until(lambda: Task.objects.get(pk=other).state == "succeeded", what="other work to end")
        left = Task.objects.filter(pk__in=[*steps, *endless]).exclude(state__in=["cancelled", "succeeded"])
        wait_until(lambda: not left.exists(), what="the steps that wait to be cancelled")
    attempts = Attempt.objects.filter(task_id__in=[*steps, *endless])
    assert told >= len(endless)
    assert not attempts.filter(started_at__gt=killed_at).exists()
    assert set(attempts.filter(task_id__in=endless).values_list("outcome", flat=True)) == {"cancelled"}
    assert Task.objects.filter(pk__in=steps, state="cancelled").count() > 200, "most had not begun"


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cast("datetime", cursor.fetchone()[0])
