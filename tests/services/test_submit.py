"""Submission: what is stored, what is refused, and what a key means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection, transaction

from scheduler.errors import CronoqError, Refused
from scheduler.models import Demand, Task, TaskPayload
from scheduler.policy.admission import Submission
from scheduler.policy.types import PriorityClass
from scheduler.services.submit import Accepted, submit, submit_batch, submit_each
from tests.support.work import HandWorker, make_bucket, make_pool, make_semaphore, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db

PLAIN = Submission(payload='{"n": 1}', pool="p")


def test_a_task_is_stored_with_what_it_carries() -> None:
    tenant = make_tenant()
    make_pool(max_attempts=4)
    make_bucket("api", rate=5, burst=10)
    accepted = submit(
        tenant,
        replace(PLAIN, kind="chat", priority=PriorityClass.HIGH, deadline_in_s=10.0, duration_hint_s=2.0,
                resources={"api": 2.0}, tags={"team": "a"}),
    )  # fmt: skip
    task = Task.objects.get(pk=accepted.id)
    assert (task.state, task.priority, task.kind, task.max_attempts, task.amounts) == ("ready", 1, "chat", 4, [2.0])
    carried = TaskPayload.objects.get(pk=accepted.id)
    assert (carried.payload, carried.tags) == ({"n": 1}, {"team": "a"})
    assert task.latest_start is not None
    assert carried.deadline_at is not None
    assert (carried.deadline_at - task.latest_start).total_seconds() == pytest.approx(2.0)
    assert task.ready_at is not None
    assert (carried.deadline_at - task.ready_at).total_seconds() == pytest.approx(10.0)


def test_needs_are_one_demand_whatever_their_order() -> None:
    tenant = make_tenant()
    make_pool()
    make_bucket("b", rate=1, burst=10)
    make_bucket("a", rate=1, burst=10)
    one = submit(tenant, replace(PLAIN, resources={"a": 1.0, "b": 2.0}))
    two = submit(tenant, replace(PLAIN, resources={"b": 2.0, "a": 1.0}))
    tasks = Task.objects.in_bulk([one.id, two.id])
    assert tasks[one.id].demand_id == tasks[two.id].demand_id
    assert tasks[one.id].amounts == tasks[two.id].amounts
    assert Demand.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "code", "loc"),
    [
        ({"pool": "nowhere"}, "unknown_pool", ("pool",)),
        ({"resources": {"nothing": 1.0}}, "unknown_resource", ("resources", "nothing")),
        ({"resources": {"api": 11.0}}, "resource_exceeds_capacity", ("resources", "api")),
        ({"resources": {"door": 3.0}}, "resource_exceeds_capacity", ("resources", "door")),
        ({"start_in_s": 400 * 86400.0}, "start_too_far", ("start_at",)),
    ],
)
def test_what_cannot_ever_run_is_refused_by_name(change: dict[str, object], code: str, loc: tuple[str, ...]) -> None:
    tenant = make_tenant()
    make_pool()
    make_bucket("api", rate=5, burst=10)
    make_semaphore("door", 2)
    with pytest.raises(Refused) as refused:
        submit(tenant, replace(PLAIN, **change))  # type: ignore[arg-type]  # one field at a time
    assert refused.value.code == code
    assert refused.value.errors[0].loc == loc
    assert not Task.objects.exists()


def test_a_batch_is_all_or_nothing_and_names_the_place() -> None:
    tenant = make_tenant()
    make_pool()
    with pytest.raises(Refused, match="Task 2 of the batch") as refused:
        submit_batch(tenant, [PLAIN, PLAIN, replace(PLAIN, pool="nowhere"), PLAIN])
    assert refused.value.errors[0].loc == ("tasks", 2, "pool")
    assert not Task.objects.exists()


def test_a_fault_in_one_submission_touches_no_other() -> None:
    tenant = make_tenant()
    make_pool()
    answers = submit_each([(tenant, PLAIN), (tenant, replace(PLAIN, pool="nowhere")), (tenant, PLAIN)])
    assert [isinstance(answer, Accepted) for answer in answers] == [True, False, True]
    assert Task.objects.count() == 2


def test_the_same_key_and_content_is_the_first_task_again() -> None:
    tenant = make_tenant()
    make_pool()
    first = submit(tenant, replace(PLAIN, key="k", payload='{"a": 1, "b": 2}'))
    again = submit(tenant, replace(PLAIN, key="k", payload='{"b":2,"a":1}'))
    assert (again.id, again.duplicate) == (first.id, True)
    assert Task.objects.count() == 1


def test_the_same_key_with_other_content_is_refused() -> None:
    tenant = make_tenant()
    make_pool()
    submit(tenant, replace(PLAIN, key="k"))
    with pytest.raises(Refused) as refused:
        submit(tenant, replace(PLAIN, key="k", payload='{"n": 2}'))
    assert refused.value.code == "key_reused"


def test_a_key_belongs_to_its_tenant() -> None:
    one, two = make_tenant("one"), make_tenant("two")
    make_pool()
    assert submit(one, replace(PLAIN, key="k")).id != submit(two, replace(PLAIN, key="k", payload="3")).id


def test_a_key_twice_in_one_batch_is_one_task() -> None:
    tenant = make_tenant()
    make_pool()
    first, again = submit_batch(tenant, [replace(PLAIN, key="k"), replace(PLAIN, key="k")])
    assert (again.id, again.duplicate, first.duplicate) == (first.id, True, False)
    with pytest.raises(Refused, match="Task 1 of the batch"):
        submit_batch(tenant, [replace(PLAIN, key="x"), replace(PLAIN, key="x", payload="0")])


def test_a_replayed_tasks_key_still_finds_it() -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=1)
    (task,) = submit_tasks(tenant, key="k")
    worker = HandWorker({pool: 1})
    worker.fail(worker.start())
    assert state_of(task) == "dead_lettered"
    again = submit(tenant, Submission(payload="{}", pool="p", key="k"))
    assert (again.id, again.state, again.duplicate) == (task, "dead_lettered", True)


def test_a_start_ahead_waits_and_then_runs() -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant, start_in_s=3600.0)
    worker = HandWorker({pool: 1})
    done = worker.dispatch()
    assert done.leased == ()
    assert done.next_due_at is not None
    assert done.next_due_at - done.now == pytest.approx(3600.0, abs=5.0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET due_at = now()")
    assert [x.task for x in worker.start()] == [task]


def test_a_refusal_inside_a_callers_transaction_can_be_handled_there() -> None:
    tenant = make_tenant()
    make_pool()
    with transaction.atomic():
        with pytest.raises(Refused):
            submit(tenant, replace(PLAIN, pool="nowhere"))
        submit(tenant, PLAIN)
    assert Task.objects.count() == 1


def test_payload_text_arrives_as_it_was_sent() -> None:
    tenant, pool = make_tenant(), make_pool()
    text = '{"quote": "\\"", "backslash": "\\\\", "comma": ",{}", "null": "NULL", "emoji": "🙂", "none": null}'
    submit(tenant, replace(PLAIN, payload=text))
    (leased,) = HandWorker({pool: 1}).start()
    assert TaskPayload.objects.get().payload == {
        "quote": '"', "backslash": "\\", "comma": ",{}", "null": "NULL", "emoji": "🙂", "none": None
    }  # fmt: skip
    assert leased.payload is not None
    assert "🙂" in leased.payload


def test_errors_are_of_the_products_own_families() -> None:
    tenant = make_tenant()
    make_pool()
    (answer,) = submit_each([(tenant, replace(PLAIN, resources={f"r{n}": 1.0 for n in range(9)}))])
    assert isinstance(answer, CronoqError)
    assert answer.code == "too_many_resources"
