"""A report under a lease that is not current any more changes nothing, whoever sends it and how often."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model

from scheduler.models import Attempt, Lease, ResourceState, Task, TaskResult
from scheduler.policy.admission import RetrySettings
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome, TaskId
from scheduler.services import heartbeat
from scheduler.services.settle import Report, settle
from tests.acceptance import handlers
from tests.acceptance.site import Site, describe, worker_of
from tests.support.waiting import wait_until
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

AT_ONCE = RetrySettings(initial_backoff_s=0.0)


def everything() -> list[list[dict[str, Any]]]:
    """Every row that a report could change."""
    tables: list[type[Model]] = [Task, Attempt, Lease, TaskResult, ResourceState]
    return [list(table._default_manager.order_by("pk").values()) for table in tables]


@pytest.mark.parametrize(
    "report",
    [
        Report(LeaseId(0), Outcome.SUCCEEDED, result='"late"', actual={"r": 7.0}),
        Report(LeaseId(0), Outcome.FAILED, Failure(FailureClass.PERMANENT, "late")),
        Report(LeaseId(0), Outcome.FAILED, Failure(FailureClass.THROTTLED, "late", 60.0), quota=("r",)),
        Report(LeaseId(0), Outcome.CANCELLED),
        Report(LeaseId(0), Outcome.RELEASED),
    ],
    ids=["success", "failure", "throttled", "cancelled", "released"],
)
@pytest.mark.usefixtures("live_database")
def test_late_and_repeated_reports_change_nothing(report: Report) -> None:
    pool = make_pool()
    make_bucket("r", rate=0.001, burst=10)
    submit_tasks(make_tenant(), retry=AT_ONCE, resources={"r": 2.0})
    worker = HandWorker({pool: 1})
    [first] = worker.start()
    late = Report(first.lease, report.outcome, report.failure, report.result, None, report.actual, report.quota)
    settle([Report(first.lease, Outcome.LOST, Failure(FailureClass.LOST, "gone"))])
    [second] = wait_until(worker.start)
    for _ in range(2):
        before = everything()
        assert settle([late]).stale == (first.lease,)
        assert everything() == before
    assert heartbeat.renew(worker.id, [first.lease]).lost == (first.lease,)
    worker.succeed([second])
    after = everything()
    assert worker.succeed([second]).stale == (second.lease,)
    assert settle([late]).stale == (first.lease,)
    assert everything() == after


@pytest.mark.acceptance
def test_an_engine_that_was_suspended_beyond_its_lease_changes_nothing_when_it_wakes(
    site: Site, tmp_path: Path
) -> None:
    written, go_on = tmp_path / "runs", tmp_path / "go-on"
    site.variables[handlers.RUNS] = str(written)
    make_pool(lease_ttl_s=1.5, config={"handler": f"{handlers.__name__}:first_waits"})
    tenant = make_tenant()
    with site.engines(2) as engines:
        [task] = submit_tasks(tenant, retry=AT_ONCE, payload=f'"{go_on}"')
        wait_until(lambda: handlers.runs(written), what="the handler to begin")
        pid = handlers.runs(written)[0].pid
        [suspended] = [program for program in engines if program.process.pid == pid]
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: Task.objects.get(pk=task).state == "succeeded", timeout_s=30, what=describe(task))
            before = everything()
            go_on.touch()
        finally:
            os.kill(pid, signal.SIGCONT)
        ended = handlers.Run("ended", handlers.runs(written)[0].lease, task, 1, pid)
        wait_until(lambda: ended in handlers.runs(written), what="the late handler to end")
        check_that_it_works_again(tenant_task=submit_tasks(tenant, 20, payload=f'"{go_on}"'), program=suspended)
        assert everything()[0][0] == before[0][0]
    assert TaskResult.objects.get(task_id=task).result == "attempt 2"
    history = Attempt.objects.filter(task_id=task).order_by("lease_id").values_list("number", "outcome")
    # What the suspended engine was given until it was missed came back unspent.
    assert [each for each in history if each != (2, "released")] == [(1, "lost"), (2, "succeeded")]


def check_that_it_works_again(*, tenant_task: list[TaskId], program: Any) -> None:
    """The engine that had been suspended takes its part of new work."""
    worker = worker_of(program)
    assert worker is not None
    wait_until(lambda: not Task.objects.filter(pk__in=tenant_task).exclude(state="succeeded").exists())
    assert Attempt.objects.filter(task_id__in=tenant_task, worker_id=worker.pk).exists(), program.text()
