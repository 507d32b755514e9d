"""The page of a task: where it stands and why, what happened, what it carries and who may see that."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from scheduler.models import Pool, Snapshot, Task
from scheduler.policy.states import TaskState
from scheduler.policy.types import FailureClass, PoolId, TaskId, TenantId
from scheduler.services.cancel import cancel
from scheduler.web import task_story
from tests.support.work import HandWorker, make_bucket, submit_tasks
from tests.web.conftest import SignIn

INJECTED = "<script>alert(1)</script>"


def test_a_waiting_task_says_why_and_shows_what_its_pool_does(
    signed_in: SignIn, task: TaskId, snapshot: Snapshot, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = signed_in("reader")
    with django_assert_max_num_queries(12):
        response = client.get(f"/ops/tasks/{task}/")
    html = response.content.decode()
    assert response.status_code == 200
    assert "Why it waits" in html
    assert "No worker is connected that runs tasks of the pool llm." in html
    assert "<code>no_worker</code>" in html
    assert "order-7" in html
    assert "Its pool now" in html
    assert "&lt;script&gt;alert(1)" in html
    assert INJECTED not in html
    assert 'style="' not in html
    assert len(html) < 40_000


def test_a_payload_is_for_those_who_may_see_it(signed_in: SignIn, task: TaskId, snapshot: Snapshot) -> None:
    html = signed_in("viewer").get(f"/ops/tasks/{task}/").content.decode()
    assert "alert(1)" not in html
    assert "scheduler.view_payload" in html


def test_attempts_stand_in_the_timeline(signed_in: SignIn, task: TaskId, llm: Pool, snapshot: Snapshot) -> None:
    worker = HandWorker({PoolId(llm.pk): 4})
    worker.fail(worker.start(), FailureClass.THROTTLED, retry_after_s=7.0)
    html = signed_in("viewer").get(f"/ops/tasks/{task}/").content.decode()
    assert "Attempt 1 failed after" in html
    assert "throttled · it broke · asked to wait 7.0 s" in html
    assert "To be tried again" in html
    assert "Waits for another attempt" in html


def test_a_running_and_an_ended_task(signed_in: SignIn, task: TaskId, llm: Pool, snapshot: Snapshot) -> None:
    worker = HandWorker({PoolId(llm.pk): 4})
    leased = worker.start()
    client = signed_in("reader")
    running = client.get(f"/ops/tasks/{task}/").content.decode()
    assert "Attempt 1 runs" in running
    assert "What it does" in running
    worker.succeed(leased)
    ended = client.get(f"/ops/tasks/{task}/").content.decode()
    assert "How it ended" in ended
    assert "&quot;done&quot;" in ended


def test_how_long_it_waited_is_told_only_of_a_task_that_was_due(
    signed_in: SignIn, task: TaskId, llm: Pool, snapshot: Snapshot
) -> None:
    client = signed_in("viewer")
    (later,) = submit_tasks(TenantId(Task.objects.get(pk=task).tenant_id), pool="llm", start_in_s=3600.0)

    def noted(number: TaskId) -> str:
        return client.get(f"/ops/tasks/{number}/").content.decode()

    assert "so far" in noted(task)
    assert "it is not due yet" in noted(later)
    for number in (task, later):
        cancel(number, None, actor="mira")
    assert "and never started" in noted(task)
    assert "it was never due" in noted(later)


@pytest.mark.parametrize("number", ["0", "7", "9223372036854775808", "99999999999999999999999"])
def test_a_task_that_is_not_there_is_a_sentence(number: str, signed_in: SignIn, db: None) -> None:
    response = signed_in("viewer").get(f"/ops/tasks/{number}/")
    assert response.status_code == 404
    assert f"There is no task {number}." in response.content.decode()


def test_what_a_task_needs_is_named(signed_in: SignIn, llm: Pool, task: TaskId, snapshot: Snapshot) -> None:
    make_bucket("openai", rate=0.1, burst=5.0)
    tenant = TenantId(Task.objects.get(pk=task).tenant_id)
    needy = submit_tasks(tenant, pool="llm", resources={"openai": 2.0})[0]
    assert "2 of openai" in signed_in("viewer").get(f"/ops/tasks/{needy}/").content.decode()


def test_every_state_has_a_word() -> None:
    words = [task_story.chip_of(state).word for state in TaskState]
    assert len(set(words)) == len(words)


def test_a_long_document_is_cut_and_says_so() -> None:
    long = task_story.document_of("Payload", '"' + "x" * 100_000 + '"', shown=True, permission="p")
    assert len(long.text) == task_story.DOCUMENT_CHARS_MAX + 1
    assert "100,002 bytes; the first 20,000 characters" in long.note
    assert task_story.document_of("Result", None, shown=True, permission="p").note == "none"
