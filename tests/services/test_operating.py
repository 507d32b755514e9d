"""Operations worked off by several at once, and changed meanwhile: nothing twice, nothing forgotten."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from django.db import connection
from django.db.models import F

from scheduler.models import Operation, OperationItem, Task
from scheduler.policy.filters import Filter
from scheduler.policy.operations import Change, OperationKind, OperationState, narrow
from scheduler.reads.operations import load_operation
from scheduler.services.changes import Author
from scheduler.services.operating import work_operations
from scheduler.services.operations import Wanted, change_operation, start_operation
from scheduler.services.replay import replay
from tests.support.waiting import wait_until
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.usefixtures("live_database")
ADA = Author("ada", "api", "mended")


def test_many_workers_and_an_operator_do_each_task_once() -> None:
    tenant, pool = make_tenant(), make_pool(slots=500, max_attempts=1)
    tasks = submit_tasks(tenant, 400)
    worker = HandWorker({pool: 500})
    worker.fail(worker.start())
    wanted = Wanted(OperationKind.REPLAY, narrow(OperationKind.REPLAY, Filter()), rate=2_000.0)
    operation = start_operation(wanted, None, ADA)
    Operation.objects.update(starts_at=F("created_at"))
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                work_operations()
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    replay(tasks[-1], None, actor="bob")
    for change in (Change.PAUSE, Change.RESUME, Change.ABORT, Change.RESUME):
        if load_operation(operation, None).row.state is not OperationState.DONE:
            change_operation(operation, change, None, ADA)
    wait_until(
        lambda: load_operation(operation, None).row.state is OperationState.DONE, timeout_s=60, what="the operation"
    )
    stop.set()
    for thread in threads:
        thread.join()
    assert Counter(Task.objects.values_list("state", "replays")) == {("ready", 1): 400}
    outcomes = Counter(OperationItem.objects.values_list("outcome", flat=True))
    row = load_operation(operation, None).row
    assert (row.applied, row.skipped) == (outcomes["applied"], outcomes["skipped"])
    assert row.applied + row.skipped == 400


def test_whoever_ends_before_the_commit_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, pool = make_tenant(), make_pool(slots=10, max_attempts=1)
    submit_tasks(tenant, 3)
    worker = HandWorker({pool: 10})
    worker.fail(worker.start())
    wanted = Wanted(OperationKind.REPLAY, narrow(OperationKind.REPLAY, Filter()), rate=1_000.0)
    operation = start_operation(wanted, None, ADA)
    Operation.objects.update(starts_at=F("created_at"))
    work_operations()

    def die(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    def work_until_it_ends() -> None:
        wait_until(lambda: bool(work_operations().applied), what="a task's turn")

    with monkeypatch.context() as patched:
        patched.setattr("scheduler.store.operations.advance", die)
        with pytest.raises(KeyboardInterrupt):
            work_until_it_ends()
    assert Counter(Task.objects.values_list("state", flat=True)) == {"dead_lettered": 3}
    assert not OperationItem.objects.filter(outcome__isnull=False).exists()
    wait_until(
        lambda: not work_operations().busy and load_operation(operation, None).row.applied == 3, what="the operation"
    )
    assert Counter(Task.objects.values_list("state", "replays")) == {("ready", 1): 3}
