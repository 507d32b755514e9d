"""Django's tasks on our pools: what the framework's documentation promises of a backend."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import checks
from django.db import transaction
from django.test import override_settings
from django_tasks import TaskResultStatus, default_task_backend, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued, task_finished, task_started

from scheduler.errors import Refused
from scheduler.models import Task as TaskRow
from scheduler.policy.types import PriorityClass, TaskId
from scheduler.services.cancel import cancel
from scheduler.tasks_backend import CronoqBackend, priority_class
from tests.conftest import LiveDatabase
from tests.engine.running import attempts_of, engine
from tests.engine.sample_django_tasks import add, add_async, fail_until, returns_what_is_no_json
from tests.support import loops
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

BACKEND = "scheduler.tasks_backend.CronoqBackend"
OPTIONS: dict[str, Any] = {"tenant": "acme", "pools": {"default": "django"}}
HANDLER = {"handler": "scheduler.tasks_backend:run_task"}


@pytest.fixture(autouse=True)
def _world(live_database: LiveDatabase) -> Iterator[None]:
    make_tenant("acme")
    make_pool("django", config=HANDLER, backoff_initial_s=0.01)
    make_pool("special", config=HANDLER)
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": OPTIONS}}):
        yield


def finished(result: Any) -> Any:
    """Wait until it has ended."""

    def ended() -> bool:
        result.refresh()
        return bool(result.is_finished)

    wait_until(ended, what="the task's end")
    return result


def test_functions_run_sync_and_async_and_their_results_come_back_from_anywhere() -> None:
    first, second = add.enqueue(1, b=2), add_async.enqueue(3, 4)
    assert (first.status, first.attempts, first.is_finished) == (TaskResultStatus.READY, 0, False)
    assert (first.args, first.kwargs) == ([1], {"b": 2})
    with pytest.raises(ValueError, match="not finished"):
        _ = first.return_value
    with engine():
        assert finished(first).return_value == 3
        assert finished(second).return_value == [3, 4]
    again = add.get_result(first.id)
    assert (again.status, again.return_value, again.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 1)
    assert again.enqueued_at is not None
    assert again.started_at is not None
    assert again.finished_at is not None
    assert again.enqueued_at <= again.started_at <= again.finished_at
    assert again.last_attempted_at == again.started_at
    assert default_task_backend.get_result(first.id).task == add
    with pytest.raises(TaskResultMismatch):
        add_async.get_result(first.id)


def test_it_can_be_enqueued_and_asked_for_from_async_code() -> None:
    async def both() -> Any:
        result = await add.aenqueue(1, 1)
        return await add.aget_result(result.id)

    assert loops.run(both()).args == [1, 1]


def test_it_is_enqueued_with_the_caller_s_transaction_or_not_at_all() -> None:
    class Changed(Exception):
        pass

    def enqueue_and_change_one_s_mind() -> None:
        with transaction.atomic():
            add.enqueue(1)
            raise Changed

    with pytest.raises(Changed):
        enqueue_and_change_one_s_mind()
    assert not TaskRow.objects.exists()
    with transaction.atomic():
        result = add.enqueue(1)
    assert add.get_result(result.id).args == [1]


def test_a_failure_tells_its_exception_and_is_tried_as_the_pool_says() -> None:
    heard: list[tuple[str, str]] = []

    def hear(sender: type, task_result: Any, signal: Any, **_: Any) -> None:
        assert sender is CronoqBackend
        names = {task_enqueued: "enqueued", task_started: "started", task_finished: "finished"}
        heard.append((names[signal], str(task_result.status)))

    for signal in (task_enqueued, task_started, task_finished):
        signal.connect(hear)
    try:
        flaky, hopeless = fail_until.enqueue(2), fail_until.enqueue(99)
        with engine():
            assert finished(flaky).return_value == {"attempts": 2, "id": flaky.id, "status": "RUNNING"}
            assert finished(hopeless).status == TaskResultStatus.FAILED
    finally:
        for signal in (task_enqueued, task_started, task_finished):
            signal.disconnect(hear)
    assert hopeless.attempts == 3
    assert [each.exception_class.__name__ for each in hopeless.errors] == ["Unready"] * 3
    assert "sample_django_tasks.py" in hopeless.errors[0].traceback
    assert "Unready: attempt 1" in hopeless.errors[0].traceback
    with pytest.raises(ValueError, match="failed"):
        _ = hopeless.return_value
    assert heard.count(("enqueued", "READY")) == 2
    assert heard.count(("started", "RUNNING")) == 5
    assert sorted(each for each in heard if each[0] == "finished") == [
        ("finished", "FAILED"),
        ("finished", "SUCCESSFUL"),
    ]


def test_what_a_queue_a_priority_and_a_time_mean() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    result = add.using(queue_name="special", priority=80, run_after=later).enqueue(1)
    row = TaskRow.objects.get(pk=int(result.id))
    assert (row.state, row.priority, row.due_at) == ("scheduled", PriorityClass.CRITICAL, later)
    assert row.kind == "tests.engine.sample_django_tasks.add"
    again = default_task_backend.get_result(result.id)
    assert (again.task.queue_name, again.task.priority, again.task.run_after) == ("special", 80, later)
    assert [priority_class(each).label for each in (-100, -1, 0, 1, 50, 51, 100)] == [
        "low", "low", "normal", "high", "high", "critical", "critical",
    ]  # fmt: skip


def test_what_cannot_be_enqueued_says_so_and_leaves_nothing() -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        add.enqueue(object())  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(ValueError, match="NUL"):
        add.enqueue("\x00")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(Refused, match="nowhere"):
        add.using(queue_name="nowhere").enqueue(1)
    with pytest.raises(InvalidTaskError):
        add.using(priority=101)
    assert not TaskRow.objects.exists()


def test_results_of_others_and_of_nobody_do_not_exist() -> None:
    (plain,) = submit_tasks(make_tenant("globex"), pool="django")
    (own,) = submit_tasks(make_tenant("initech"), pool="django")
    for unknown in ("0", "999", "x", "", "-1", "9" * 30, str(plain), str(own)):
        with pytest.raises(TaskResultDoesNotExist):
            default_task_backend.get_result(unknown)


def test_a_cancelled_task_has_failed() -> None:
    result = add.enqueue(1)
    cancel(TaskId(int(result.id)), None, actor="test")
    result.refresh()
    assert (result.status, result.errors) == (TaskResultStatus.FAILED, [])


def test_only_declared_functions_are_called_whoever_submits() -> None:
    tenant = make_tenant("globex")
    payload = '{"django_task": "tests.engine.sample_django_tasks.not_declared", "args": [], "kwargs": {}}'
    (bare,) = submit_tasks(tenant, pool="django")
    (forged,) = submit_tasks(tenant, pool="django", payload=payload)
    no_json = returns_what_is_no_json.enqueue()
    with engine():
        wait_until(lambda: TaskRow.objects.filter(pk__in=[bare, forged], state="failed").count() == 2)
        assert finished(no_json).status == TaskResultStatus.FAILED
    assert "enqueued through Django's tasks" in str(attempts_of(bare)[0][3])
    assert "not declared with @task" in str(attempts_of(forged)[0][3])
    assert no_json.errors[0].exception_class is TypeError


def test_a_backend_says_what_it_can_do_and_what_is_wrong_with_its_settings() -> None:
    backend = default_task_backend
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority
    assert list(backend.check()) == []
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": {"tennant": "acme"}}}):
        found = list(task_backends["default"].check())
    assert [each.id for each in found if isinstance(each, checks.Error)] == ["cronoq.E001", "cronoq.E002"]
