"""Fixed starts and expiry against a real database: what is promised, held, started and missed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from scheduler.errors import Refused
from scheduler.models import FixedStart, Task
from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.types import PriorityClass, TaskId
from scheduler.reads.pool_why import pool_why
from scheduler.reads.why import why
from scheduler.services.missing import end_overdue_blocked
from scheduler.services.replay import replay
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db


def move(task: TaskId, seconds: float) -> None:
    """Make everything that is said about a task's times so much earlier."""
    gone = timedelta(seconds=seconds)
    Task.objects.filter(pk=task).update(
        due_at=F("due_at") - gone, start_by=F("start_by") - gone, latest_start=F("latest_start") - gone
    )
    FixedStart.objects.filter(pk=task).update(
        starts_at=F("starts_at") - gone, ends_at=F("ends_at") - gone, held_from=F("held_from") - gone
    )


def test_no_more_than_half_of_a_pool_is_promised_at_once() -> None:
    tenant = make_tenant()
    make_pool(slots=4)
    fixed = {"start_at": timezone.now().timestamp() + 100.0, "tolerance_s": 1.0, "duration_hint_s": 10.0}
    submit_tasks(tenant, 2, **fixed)
    with pytest.raises(Refused, match="there is room at") as refused:
        submit_tasks(tenant, 1, **fixed)
    assert refused.value.code == "reservation_conflict"
    assert submit_tasks(tenant, 1, **{**fixed, "start_at": fixed["start_at"] + 10.0})
    # A delay is no promise, and a batch counts against itself.
    assert submit_tasks(tenant, 50, start_in_s=100.0)
    with pytest.raises(Refused):
        submit_tasks(tenant, 3, **{**fixed, "start_at": fixed["start_at"] + 1000.0})


def test_a_slot_is_kept_free_shortly_before_and_the_fixed_start_takes_it() -> None:
    tenant, rival, pool = make_tenant(), make_tenant("rival"), make_pool(slots=2)
    (fixed,) = submit_tasks(tenant, start_in_s=3.0, tolerance_s=1.0, priority=PriorityClass.LOW)
    submit_tasks(rival, 5, priority=PriorityClass.CRITICAL)
    worker = HandWorker({pool: 2})
    assert len(worker.start()) == 1
    assert worker.start() == []
    (waits,) = Task.objects.filter(state="ready").order_by("id").values_list("id", flat=True)[:1]
    assert [reason.code for reason in why(TaskId(waits), None).reasons][:1] == ["slot_held"]
    assert [reason.code for reason in pool_why("p").reasons] == ["slot_held"]
    assert "slot_held" not in [reason.code for reason in why(fixed, None).reasons]
    move(fixed, 3.0)
    assert [leased.task for leased in worker.start()] == [fixed]


def test_nothing_is_held_long_before() -> None:
    tenant, pool = make_tenant(), make_pool(slots=2)
    submit_tasks(tenant, start_in_s=60.0, tolerance_s=1.0)
    submit_tasks(tenant, 5)
    assert len(HandWorker({pool: 2}).start()) == 2


@pytest.mark.parametrize(
    ("on_miss", "state"), [(OnMiss.RUN_LATE, "running"), (OnMiss.SKIP, "missed"), (OnMiss.FAIL, "failed")]
)
def test_a_start_that_is_missed_does_what_it_said(on_miss: OnMiss, state: str) -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant, start_in_s=30.0, tolerance_s=1.0, on_miss=on_miss)
    move(task, 32.0)
    started = HandWorker({pool: 2}).start()
    assert state_of(task) == state
    assert len(started) == (state == "running")


def test_a_fixed_start_that_began_in_time_is_tried_again_later() -> None:
    tenant, pool = make_tenant(), make_pool(backoff_initial_s=0)
    (task,) = submit_tasks(tenant, start_in_s=30.0, tolerance_s=1.0, on_miss=OnMiss.FAIL)
    move(task, 30.2)
    worker = HandWorker({pool: 2})
    leased = worker.start()
    assert [x.task for x in leased] == [task]
    worker.fail(leased)
    move(task, 5.0)
    assert [x.task for x in worker.start()] == [task]


@pytest.mark.parametrize("state", ["scheduled", "ready", "retrying"])
def test_what_expired_is_missed_wherever_it_waits_and_never_starts(state: str) -> None:
    tenant, pool = make_tenant(), make_pool()
    (task,) = submit_tasks(tenant, expires_in_s=10.0)
    Task.objects.filter(pk=task).update(state=state, due_at=None if state == "ready" else timezone.now())
    worker = HandWorker({pool: 2})
    before = worker.dispatch(starts_max=0)
    assert before.next_miss_at is not None
    assert before.next_miss_at - before.now == pytest.approx(10.0, abs=5.0)
    move(task, 11.0)
    assert worker.start() == []
    assert state_of(task) == "missed"
    assert replay(task, tenant, actor="test") == "ready"
    assert [x.task for x in worker.start()] == [task]


def test_a_blocked_task_expires_too() -> None:
    tenant = make_tenant()
    make_pool()
    (task,) = submit_tasks(tenant, expires_in_s=10.0)
    Task.objects.filter(pk=task).update(state="blocked", ready_at=None)
    assert end_overdue_blocked() == 0
    move(task, 11.0)
    assert end_overdue_blocked() == 1
    assert state_of(task) == "missed"
