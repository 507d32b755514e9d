"""Settlement: what the end of a lease does to its task, its history and the limits it drew on."""

from __future__ import annotations

import pytest
from django.db import connection

from scheduler.models import Attempt, Lease, Pool, ResourceState, Task, TaskResult
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome
from scheduler.services.cancel import cancel
from scheduler.services.settle import Report, reap, settle
from scheduler.store import leases as lease_store
from tests.support.work import HandWorker, make_bucket, make_pool, make_semaphore, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db


def expire_leases() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE lease SET expires_at = now() - interval '1 second'")


def make_due() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET due_at = now() - interval '1 second' WHERE state = 'retrying'")


def test_success_keeps_the_result_and_one_attempt() -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    worker.succeed(worker.start())
    assert state_of(task) == "succeeded"
    assert TaskResult.objects.get(task_id=task).result == "done"
    attempt = Attempt.objects.get(task_id=task)
    assert (attempt.number, attempt.outcome) == (1, "succeeded")
    assert attempt.ready_at <= attempt.started_at <= attempt.finished_at
    assert not Lease.objects.exists()


def test_a_failed_task_retries_until_its_attempts_are_spent_then_is_dead_lettered() -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=3)
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    for number in (1, 2, 3):
        (leased,) = worker.start()
        assert leased.attempt == number
        worker.fail([leased])
        make_due()
    assert state_of(task) == "dead_lettered"
    assert worker.start() == []
    assert list(Attempt.objects.order_by("number").values_list("number", "outcome", "message")) == [
        (n, "failed", "it broke") for n in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("failure_class", "state"),
    [
        (FailureClass.PERMANENT, "failed"),
        (FailureClass.PROVIDER_BILLING, "dead_lettered"),
        (FailureClass.THROTTLED, "retrying"),
        (FailureClass.OVERLOADED, "retrying"),
        (FailureClass.CAPACITY, "retrying"),
        (FailureClass.TIMEOUT, "retrying"),
        (FailureClass.ERROR, "retrying"),
    ],
)
def test_the_failure_class_decides(failure_class: FailureClass, state: str) -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=3)
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    worker.fail(worker.start(), failure_class)
    assert state_of(task) == state


def test_a_repeated_report_changes_nothing() -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    leased = worker.start()
    worker.succeed(leased)
    before = Task.objects.values().get(pk=task)
    again = worker.succeed(leased)
    late = worker.fail(leased)
    assert again.stale == late.stale == (leased[0].lease,)
    assert Task.objects.values().get(pk=task) == before
    assert Attempt.objects.count() == 1


def test_a_late_report_of_a_lost_attempt_changes_nothing() -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=3)
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    old = worker.start()
    expire_leases()
    assert reap() == 1
    make_due()
    new = worker.start()
    assert new[0].attempt == 2
    assert worker.succeed(old).stale == (old[0].lease,)
    assert state_of(task) == "running"
    worker.succeed(new)
    assert list(Attempt.objects.order_by("lease_id").values_list("outcome", flat=True)) == ["lost", "succeeded"]


def test_a_report_mixed_with_stale_ones_counts() -> None:
    tenant, pool = make_tenant(), make_pool()
    tasks = submit_tasks(tenant, 2)
    worker = HandWorker({pool: 2})
    leased = worker.start()
    ghost = Report(LeaseId(987_654_321), Outcome.SUCCEEDED, result="null")
    settled = settle([ghost, *(Report(x.lease, Outcome.SUCCEEDED, result="null") for x in leased)])
    assert settled.stale == (ghost.lease,)
    assert {state_of(task) for task in tasks} == {"succeeded"}


def test_the_reaper_leaves_renewed_leases_alone() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    expire_leases()
    assert lease_store.renew(worker.id, [leased.lease]) == {leased.lease: False}
    assert reap() == 0
    assert Lease.objects.exists()


def test_an_expired_lease_reported_before_the_reaper_came_still_counts() -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    leased = worker.start()
    expire_leases()
    worker.succeed(leased)
    assert reap() == 0
    assert state_of(task) == "succeeded"


def test_a_cancelled_running_task_stays_cancelled_whatever_its_attempt_comes_to() -> None:
    tenant, pool = make_tenant(), make_pool()
    one, two, three = submit_tasks(tenant, 3)
    worker = HandWorker({pool: 3})
    leased = {x.task: x for x in worker.start()}
    for task in (one, two, three):
        cancel(task, tenant, actor="test")
    worker.succeed([leased[one]])
    worker.fail([leased[two]])
    settle([Report(leased[three].lease, Outcome.RELEASED)])
    assert [state_of(task) for task in (one, two, three)] == ["cancelled"] * 3
    assert not TaskResult.objects.exists()


def test_a_cancellation_that_nobody_acknowledges_is_final_after_the_grace() -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    worker.start()
    cancel(task, tenant, actor="test")
    assert reap() == 0
    with connection.cursor() as cursor:
        cursor.execute("UPDATE lease SET cancel_requested_at = now() - interval '11 seconds'")
    assert reap() == 1
    assert state_of(task) == "cancelled"


def test_a_throttled_answer_closes_the_bucket_for_everybody() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("api", rate=100.0, burst=100.0)
    make_semaphore("door", 10)
    submit_tasks(tenant, 3, resources={"api": 1.0, "door": 1.0})
    worker = HandWorker({pool: 1})
    worker.fail(worker.start(), FailureClass.THROTTLED, retry_after_s=30.0)
    done = worker.dispatch()
    assert done.leased == ()
    assert done.look_again_at is not None
    assert 29.0 < done.look_again_at - done.now <= 30.0
    assert ResourceState.objects.get(resource__name="door").blocked_until is None


def test_a_shorter_retry_after_never_opens_the_bucket_earlier() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("api", rate=100.0, burst=100.0)
    submit_tasks(tenant, 2, resources={"api": 1.0})
    worker = HandWorker({pool: 2})
    one, two = worker.start()
    worker.fail([one], FailureClass.THROTTLED, retry_after_s=60.0)
    worker.fail([two], FailureClass.THROTTLED, retry_after_s=1.0)
    done = worker.dispatch()
    assert done.leased == ()


def test_only_the_named_quota_is_closed() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("requests", rate=100.0, burst=100.0)
    make_bucket("tokens", rate=100.0, burst=100.0)
    submit_tasks(tenant, 1, resources={"requests": 1.0, "tokens": 1.0})
    worker = HandWorker({pool: 2})
    (leased,) = worker.start()
    failure = Failure(FailureClass.THROTTLED, "slow down", 9.0)
    settle([Report(leased.lease, Outcome.FAILED, failure, quota=("requests",))])
    closed = set(ResourceState.objects.filter(blocked_until__isnull=False).values_list("resource__name", flat=True))
    assert closed == {"requests"}


def test_measured_amounts_correct_the_bucket_and_may_leave_a_debt() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("tokens", rate=0.0001, burst=100.0)
    submit_tasks(tenant, 2, resources={"tokens": 30.0})
    worker = HandWorker({pool: 2})
    one, two = worker.start()
    settle([Report(one.lease, Outcome.SUCCEEDED, result="null", actual={"tokens": 10.0})])
    assert ResourceState.objects.get().level == pytest.approx(60.0, abs=0.1)
    settle([Report(two.lease, Outcome.SUCCEEDED, result="null", actual={"tokens": 150.0})])
    assert ResourceState.objects.get().level == pytest.approx(-60.0, abs=0.1)


def test_a_retry_after_is_kept_by_the_task_and_a_very_long_one_dead_letters() -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=5)
    soon, never = submit_tasks(tenant, 2)
    worker = HandWorker({pool: 2})
    leased = {x.task: x for x in worker.start()}
    worker.fail([leased[soon]], retry_after_s=50.0)
    worker.fail([leased[never]], retry_after_s=3601.0)
    assert state_of(never) == "dead_lettered"
    task = Task.objects.get(pk=soon)
    attempt = Attempt.objects.get(task_id=soon)
    assert task.due_at is not None
    assert 50.0 <= (task.due_at - attempt.finished_at).total_seconds() < 52.0


def test_a_tasks_own_retry_settings_go_before_its_pools() -> None:
    from scheduler.policy.admission import RetrySettings  # noqa: PLC0415 - only here

    tenant, pool = make_tenant(), make_pool(max_attempts=2, backoff_initial_s=500.0, backoff_max_s=500.0)
    (task,) = submit_tasks(tenant, retry=RetrySettings(max_attempts=8, initial_backoff_s=0.0))
    worker = HandWorker({pool: 1})
    for _ in range(7):
        worker.fail(worker.start())
    assert state_of(task) in {"ready", "retrying"}
    worker.fail(worker.start())
    assert state_of(task) == "dead_lettered"


def test_messages_with_anything_in_them_are_stored() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_tasks(tenant, 1)
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    text = 'quote " backslash \\ brace } comma , NULL \x00 half \ud800 ' + "x" * 5000
    settle([Report(leased.lease, Outcome.FAILED, Failure(FailureClass.ERROR, text))])
    message = Attempt.objects.get().message
    assert message is not None
    assert message.startswith('quote " backslash \\ brace } comma , NULL � half ? xxx')
    assert len(message) == 2000


def test_a_message_that_reads_null_is_not_lost() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_tasks(tenant, 1)
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    settle([Report(leased.lease, Outcome.FAILED, Failure(FailureClass.ERROR, "NULL"))])
    assert Attempt.objects.get().message == "NULL"


def test_an_edited_pool_rule_applies_to_the_next_failure() -> None:
    tenant, pool = make_tenant(), make_pool(max_attempts=5, backoff_initial_s=1.0)
    (task,) = submit_tasks(tenant)
    Pool.objects.update(backoff_initial_s=0.0)
    worker = HandWorker({pool: 1})
    worker.fail(worker.start())
    assert state_of(task) == "retrying"
    assert [x.task for x in worker.start()] == [task]


def test_overuse_of_a_bucket_that_has_been_idle_is_not_forgiven() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("tokens", rate=0.001, burst=100.0)
    submit_tasks(tenant, 1, resources={"tokens": 10.0})
    (leased,) = HandWorker({pool: 1}).start()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE resource_state SET level_at = now() - interval '30 days'")
    settle([Report(leased.lease, Outcome.SUCCEEDED, result="null", actual={"tokens": 60.0})])
    assert ResourceState.objects.get().level == pytest.approx(50.0, abs=0.1)
