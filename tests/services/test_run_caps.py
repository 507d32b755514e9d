"""A run in an endless loop is told of once before, and stopped at its cap: dollars, tokens, time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.errors import Conflict, Refused
from scheduler.models import AuditEvent, Budget, EventFresh, Run, RunAlert, RunUse
from scheduler.policy.runs import Asked
from scheduler.policy.types import LeasedTask, Outcome, RunId, TenantId
from scheduler.reads.runs import run_detail
from scheduler.services import heartbeat
from scheduler.services.run_tending import tend_runs
from scheduler.services.runs import create_run, edit_caps, resume_run
from scheduler.services.settle import Report, settle
from tests.services.test_money import (
    USD,
    check_projections,
    make_llm_pool,
    make_price,
    report,
    reserved_by,
    submit_calls,
    usage,
)
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def start(worker: HandWorker) -> list[LeasedTask]:
    """Plan once, with the worker seen just now, however long the test takes."""
    heartbeat.renew(worker.id, ())
    return worker.start()


def loop_until_killed(tenant: TenantId, run: RunId, worker: HandWorker, *, output: int) -> tuple[int, int]:
    """Steps that ran, and how many had run when the first alert came."""
    ran, alerted_after = 0, 0
    for _ in range(50):
        try:
            submit_calls(tenant, run=run)
        except Conflict:
            return ran, alerted_after
        leased = start(worker)
        settle([report(each, output) for each in leased])
        ran += len(leased)
        tend_runs()
        if not alerted_after and RunAlert.objects.exists():
            alerted_after = ran
    raise AssertionError("it loops without end")


def test_an_endless_loop_stops_at_its_dollar_cap_and_its_alert_came_once_before() -> None:
    make_price()
    tenant, worker = make_tenant(), HandWorker({make_llm_pool(): 1})
    run = create_run(tenant, "{}", asked=Asked(max_steps=1_000, max_cost_nano=USD // 10)).id
    ran, alerted_after = loop_until_killed(tenant, run, worker, output=900)
    row, budget = Run.objects.get(pk=run), Budget.objects.get(scope="run", scope_id=run)
    assert row.state == "killed"
    assert row.reason.startswith("Its cap of cost was reached")
    assert 0 < alerted_after < ran
    assert budget.spent_nano <= USD // 10
    assert budget.spent_nano > 0.9 * (USD // 10)
    assert budget.reserved_nano == 0
    assert [a.cap.value for a in run_detail(run, tenant).alerts] == ["cost"]
    assert AuditEvent.objects.filter(action="run.kill", source="system").count() == 1
    told = [(each.type, each.tenant_id, (each.data or {})["run"]) for each in EventFresh.objects.order_by("id")]
    assert told == [("alert.run_cap", tenant, run), ("alert.run_stopped", tenant, run)]
    check_projections()
    with pytest.raises(Refused) as used_up:
        resume_run(run, tenant, actor="ada")
    assert used_up.value.code == "run_cap_reached"
    resume_run(run, tenant, caps={"max_cost_nano": USD}, actor="ada")
    submit_calls(tenant, run=run)
    assert len(start(worker)) == 1


def test_fifty_calls_of_a_run_with_money_for_three_start_three_and_others_go_on() -> None:
    make_price()
    tenant, worker = make_tenant(), HandWorker({make_llm_pool(): 60})
    (probe,) = submit_calls(tenant)
    run = create_run(tenant, "{}", asked=Asked(50, 50, None, 3 * reserved_by(probe))).id
    submit_calls(tenant, 50, run=run)
    leased = start(worker)
    assert len(leased) == 1 + 3
    assert start(worker) == []
    check_projections()


def test_a_loop_stops_at_its_token_cap_and_failed_attempts_count() -> None:
    tenant, worker = make_tenant(), HandWorker({make_pool(): 1})
    run = create_run(tenant, "{}", asked=Asked(max_tokens=1_000)).id
    for ran in range(1, 20):
        submit_tasks(tenant, run=run)
        leased = start(worker)
        settle([Report(each.lease, Outcome.FAILED, usage=usage(180)) for each in leased])
        tend_runs()
        if Run.objects.get(pk=run).state == "killed":
            break
        assert RunAlert.objects.exists() == (ran >= 4)
    assert ran == 5
    assert RunUse.objects.get(pk=run).tokens == 1_000
    assert [(a.cap, a.used) for a in RunAlert.objects.all()] == [("tokens", 800.0)]


def test_a_run_is_told_of_and_stopped_by_the_clock() -> None:
    tenant, worker = make_tenant(), HandWorker({make_pool(): 1})
    run = create_run(tenant, "{}", asked=Asked(wall_s=100.0)).id
    submit_tasks(tenant, 2, run=run)
    age(run, 85)
    tend_runs()
    assert [a.cap for a in RunAlert.objects.all()] == ["wall_clock"]
    assert len(start(worker)) == 1
    age(run, 20)
    assert start(worker) == [], "the gate is closed before anybody has looked"
    tend_runs()
    assert Run.objects.get(pk=run).state == "killed"
    assert RunAlert.objects.count() == 1


def age(run: RunId, seconds: int) -> None:
    """Let a run be so much older."""
    row = Run.objects.get(pk=run)
    assert row.deadline_at is not None
    earlier = timedelta(seconds=seconds)
    heed_at = None if row.heed_at is None else row.heed_at - earlier
    Run.objects.filter(pk=run).update(
        created_at=row.created_at - earlier, deadline_at=row.deadline_at - earlier, heed_at=heed_at
    )
    assert timezone.now() > row.created_at - earlier


def test_the_last_of_its_steps_is_told_of_but_ends_nothing() -> None:
    tenant = make_tenant()
    make_pool()
    run = create_run(tenant, "{}", asked=Asked(max_steps=5)).id
    submit_tasks(tenant, 5, run=run)
    tend_runs()
    tend_runs()
    assert [(a.cap, a.used, a.most) for a in RunAlert.objects.all()] == [("steps", 5.0, 5.0)]
    assert Run.objects.get(pk=run).state == "active"
    edit_caps(run, tenant, 1, {"max_steps": 6}, actor="ada")
    submit_tasks(tenant, 1, run=run)
