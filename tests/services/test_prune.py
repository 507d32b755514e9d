"""What is forgotten, and what is not, whatever else goes on."""

from __future__ import annotations

import threading
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from scheduler.models import (
    Attempt,
    AuditEvent,
    Budget,
    Checkpoint,
    FixedStart,
    Receipt,
    Run,
    RunIntake,
    RunUse,
    Schedule,
    Task,
    TaskEdge,
    TaskGroup,
    TaskPayload,
    TaskResult,
)
from scheduler.policy.admission import Submission
from scheduler.policy.graph import Dependency
from scheduler.policy.runs import Asked, RunState
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.reads.runs import with_runs
from scheduler.reads.upstream import with_upstream
from scheduler.services.changes import Author, record
from scheduler.services.prune import DAY_S, Keep, Pruned, prune
from scheduler.services.receipts import claim, save_checkpoint
from scheduler.services.reconcile import find_drift
from scheduler.services.replay import replay
from scheduler.services.run_tending import stop_ended
from scheduler.services.runs import create_run, finish_run
from scheduler.services.snapshot import take_snapshot
from scheduler.services.submit import submit_batch
from scheduler.store import overview
from scheduler.store import prune as store
from tests.conftest import LiveDatabase
from tests.support.audit import age_audit
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

MONTH = Keep(30 * DAY_S)


def forget(keep: Keep = MONTH) -> Pruned:
    return prune(keep, rest=lambda: None, rows_max=3)


def let_pass(days: float) -> None:
    """Make what has ended so much older."""
    gone = timedelta(days=days)
    Task.objects.update(finished_at=F("finished_at") - gone)
    TaskGroup.objects.update(created_at=F("created_at") - gone)
    age_audit(gone)


def run_all(worker: HandWorker) -> None:
    while leased := worker.start():
        worker.succeed(leased)


@pytest.mark.django_db
def test_what_ended_long_ago_goes_with_all_that_is_its_own() -> None:
    tenant, pool = make_tenant(), make_pool()
    first = Submission("{}", pool="p", key="a", group="g")
    second = Submission("{}", pool="p", key="b", group="g", after=(Dependency("a"),))
    submit_batch(tenant, [first, second, *[Submission("{}", pool="p")] * 6])
    submit_tasks(tenant, start_in_s=0.001, tolerance_s=60.0)
    run_all(HandWorker({pool: 10}))
    let_pass(29)
    (young,) = submit_tasks(tenant)
    assert forget() == Pruned()
    let_pass(2)
    assert forget() == Pruned(tasks=9, groups=1)
    assert [row.pk for row in (*Task.objects.all(), *TaskPayload.objects.all())] == [young, young]
    assert [model.objects.count() for model in (TaskResult, Attempt, TaskEdge, FixedStart)] == [0, 0, 0, 0]
    # Its key is as good as new.
    assert submit_batch(tenant, [first])[0].duplicate is False


@pytest.mark.django_db
def test_a_result_stays_until_it_was_handed_on() -> None:
    tenant, pool = make_tenant(), make_pool()
    parent = Submission("{}", pool="p", key="a")
    child = Submission("{}", pool="p", key="b", after=(Dependency("a"),), start_in_s=3_600.0)
    accepted, _ = submit_batch(tenant, [parent, child])
    worker = HandWorker({pool: 10})
    run_all(worker)
    let_pass(31)
    assert forget().tasks == 0
    Task.objects.filter(key="b").update(due_at=F("due_at") - timedelta(hours=2))
    (leased,) = with_upstream(worker.start())
    assert '"done"' in str(leased.upstream)
    worker.succeed([leased])
    assert forget().tasks == 1
    assert not Task.objects.filter(pk=accepted.id).exists()


@pytest.mark.django_db
def test_the_last_task_of_a_schedule_and_one_that_was_replayed_stay() -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=1)
    last, again, *_ = submit_tasks(tenant, 3)
    worker = HandWorker({pool: 10})
    worker.fail(worker.start())
    schedule = {"cron": "* * * * *", "time_zone": "UTC", "task": {}, "overlap": Overlap.SKIP, "catch_up": CatchUp.NONE}
    Schedule.objects.create(tenant_id=tenant, name="s", last_task_id=last, **schedule)
    let_pass(31)
    found = store.find_old(after=0, before=1e12, rows_max=10)
    assert found is not None
    assert last not in found.old
    replay(again, None, actor="test")
    assert store.delete_tasks(found.old, before=1e12) == 1
    assert sorted(Task.objects.values_list("id", flat=True)) == sorted([last, again])


@pytest.mark.django_db
def test_steps_of_a_run_stay_until_it_has_ended() -> None:
    tenant, pool = make_tenant(), make_pool()
    (step,) = submit_tasks(tenant)
    run = Run.objects.create(tenant_id=tenant, goal={}, max_steps=10, max_width=10)
    TaskPayload.objects.filter(pk=step).update(run_id=run.pk)
    run_all(HandWorker({pool: 10}))
    let_pass(31)
    assert forget().tasks == 0
    Run.objects.update(state="succeeded", finished_at=timezone.now())
    assert forget().tasks == 1


@pytest.mark.django_db
def test_a_run_goes_with_its_receipts_checkpoint_and_budget_once_none_of_its_steps_is_kept() -> None:
    tenant, pool = make_tenant(), make_pool()
    old, young, open_ = (create_run(tenant, "{}", asked=Asked(max_cost_nano=10**9)).id for _ in range(3))
    for run in (old, young, open_):
        submit_tasks(tenant, run=run)
    worker = HandWorker({pool: 10})
    for leased in with_runs(worker.start()):
        assert leased.run is not None
        claim(leased.run, "refund", "f", lease=leased.lease, tenant=tenant)
        save_checkpoint(leased.run, '{"at": 1}', lease=leased.lease, tenant=tenant)
        worker.succeed([leased])
    for run in (old, young):
        finish_run(run, tenant, RunState.SUCCEEDED, actor="test")
    stop_ended()
    Run.objects.filter(pk=old).update(created_at=F("created_at") - timedelta(days=40))
    Run.objects.filter(pk=old).update(finished_at=F("finished_at") - timedelta(days=31))
    assert forget().runs == 0
    let_pass(31)
    assert forget() == Pruned(tasks=2, runs=1)
    kept = {young, open_}
    for model in (RunIntake, RunUse, Checkpoint, Receipt):
        assert set(model._default_manager.values_list("run_id", flat=True)) == kept
    assert set(Budget.objects.filter(scope="run").values_list("scope_id", flat=True)) == kept
    assert find_drift() == []


@pytest.mark.django_db
def test_counts_stay_true_and_rates_do_not_see_it() -> None:
    tenant, pool = make_tenant(), make_pool(slots=50)
    worker = HandWorker({pool: 50})
    submit_tasks(tenant, 20)
    worker.succeed(worker.start()[:15])
    let_pass(31)
    before = take_snapshot(None, {}, interval_s=1.0)
    assert forget().tasks == 15
    submit_tasks(tenant, 3)
    worker.succeed(worker.start())
    take_snapshot(before, {}, interval_s=1.0)
    row = overview.load_latest_snapshot()
    assert row is not None
    totals: Any = row.body["totals"]
    assert totals["succeeded_per_s"] > 0.0
    kept = {key: n for key, n in overview.load_counts().items() if n and key[2] not in ("started", "pruned_ok")}
    assert kept == overview.recount()


@pytest.mark.django_db
def test_the_audit_is_kept_for_ever_unless_told_otherwise() -> None:
    for _ in range(7):
        record(Author("test", "api", ""), "pool.edit", "pool:p")
    let_pass(100)
    record(Author("test", "api", ""), "pool.edit", "pool:p")
    assert forget().audit_events == 0
    assert forget(Keep(30 * DAY_S, audit_s=90 * DAY_S)).audit_events == 7
    assert AuditEvent.objects.count() == 1


@pytest.mark.django_db
def test_the_command_tells_before_it_does() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_tasks(tenant, 4)
    run_all(HandWorker({pool: 10}))
    let_pass(31)
    said = StringIO()
    call_command("prune", "--dry-run", stdout=said)
    assert said.getvalue() == "Past their time: at most 4 tasks, 0 empty groups, 0 audit events.\n"
    call_command("prune", "--pause-s", "0", stdout=said)
    assert said.getvalue().endswith("Forgotten: 4 tasks, 0 runs, 0 groups, 0 occurrences, 0 audit events.\n")
    with pytest.raises(CommandError, match="at least 1 hour"):
        call_command("prune", "--days", "0.01")
    with pytest.raises(CommandError, match="--rows"):
        call_command("prune", "--rows", "0")


def test_what_others_hold_is_passed_over(live_database: LiveDatabase) -> None:
    tenant, pool = make_tenant(), make_pool()
    held, free = submit_tasks(tenant, 2)
    run_all(HandWorker({pool: 10}))
    submit_batch(tenant, [Submission("{}", pool="p", group="g")])
    Task.objects.filter(state="ready").delete()
    TaskPayload.objects.filter(task_id__gt=free).delete()
    let_pass(31)
    done: list[Pruned] = []

    def other() -> None:
        try:
            done.append(forget())
        finally:
            connection.close()

    with transaction.atomic():
        Task.objects.select_for_update().get(pk=held)
        # Whoever is about to join a group of before keeps it.
        submit_batch(tenant, [Submission("{}", pool="p", group="g")])
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(timeout=30)
        assert done == [Pruned(tasks=1)]
    assert Task.objects.filter(pk=held).exists()
    assert TaskGroup.objects.count() == 1
    assert forget() == Pruned(tasks=1)
