"""What the database undid is done again: once in the end, and never a part of a caller's transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from django.db import OperationalError, transaction

from scheduler.engine.group_commit import GroupCommit
from scheduler.models import Attempt, AuditEvent, Run, Task
from scheduler.policy.admission import Submission
from scheduler.services.again import TRIES
from scheduler.services.cancel import cancel
from scheduler.services.runs import create_run, pause_run
from scheduler.services.submit import submit
from scheduler.store import overview
from tests.conftest import LiveDatabase
from tests.support.deadlock import deadlock_in, undone_in
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

PLAIN = Submission("{}", pool="p", key="k")


def test_a_submission_that_met_a_deadlock_is_stored_once(
    live_database: LiveDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    tenant = make_tenant()
    make_pool()
    group = GroupCommit()
    try:
        with deadlock_in(live_database.url, "task") as came, caplog.at_level(logging.WARNING):
            accepted = group.submit(tenant, PLAIN)
            assert came() == 2
    finally:
        group.close()
    assert not accepted.duplicate
    assert list(Task.objects.values_list("id", "state")) == [(accepted.id, "ready")]
    assert "submit.submit_each was undone by the database (try 1 of 3): deadlock detected" in caplog.text


def test_a_report_that_met_a_deadlock_is_settled_once(live_database: LiveDatabase) -> None:
    tenant, pool = make_tenant(), make_pool()
    worker = HandWorker({pool: 5})
    submit_tasks(tenant, 3)
    leased = worker.start()
    with deadlock_in(live_database.url, "attempt") as came:
        settled = worker.succeed(leased)
        assert came() == 2
    assert (set(settled.states.values()), settled.stale) == ({"succeeded"}, ())
    assert list(Attempt.objects.values_list("outcome", flat=True)) == ["succeeded"] * 3
    counted = {key: n for key, n in overview.load_counts().items() if n and key[2] != "started"}
    assert counted == overview.recount()


def test_what_an_operator_does_is_done_and_recorded_once(live_database: LiveDatabase) -> None:
    run = create_run(make_tenant(), "{}").id
    with deadlock_in(live_database.url, "audit_event") as came:
        pause_run(run, None, actor="ann")
        assert came() == 2
    assert Run.objects.get(pk=run).state == "paused"
    assert list(AuditEvent.objects.values_list("action", flat=True)) == ["run.pause"]


def _cancel_one() -> Callable[[], object]:
    make_pool()
    task = submit(make_tenant(), PLAIN).id
    return lambda: cancel(task, None, actor="ann")


@pytest.mark.parametrize(("state", "times"), [("40001", TRIES - 1), ("40P01", TRIES - 1)])
def test_it_is_done_again_as_long_as_tries_are_left(live_database: LiveDatabase, state: str, times: int) -> None:
    act = _cancel_one()
    with undone_in(live_database.url, "audit_event", state, times=times) as came:
        act()
        assert came() == TRIES
    assert Task.objects.get().state == "cancelled"


@pytest.mark.parametrize(("state", "tries"), [("40P01", TRIES), ("57014", 1), ("53300", 1)])
def test_then_the_fault_is_told_and_other_faults_at_once(live_database: LiveDatabase, state: str, tries: int) -> None:
    act = _cancel_one()
    with undone_in(live_database.url, "audit_event", state, times=99) as came:
        with pytest.raises(OperationalError):
            act()
        assert came() == tries
    assert Task.objects.get().state == "ready"


def test_a_part_of_a_callers_transaction_is_not_repeated(live_database: LiveDatabase) -> None:
    act = _cancel_one()
    with undone_in(live_database.url, "audit_event", "40P01", times=1) as came:
        with pytest.raises(OperationalError), transaction.atomic():
            act()
        assert came() == 1
        assert Task.objects.get().state == "ready"
