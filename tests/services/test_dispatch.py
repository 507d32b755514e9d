"""Dispatch: what starts, and that nothing starts twice or beyond a limit, however many plan at once."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection

from scheduler.models import Attempt, Lease, Resource, ResourceState, Task
from scheduler.policy.lanebook import LaneBook
from scheduler.policy.types import Outcome, PriorityClass, WaitReason
from scheduler.services.dispatch import dispatch
from scheduler.services.resources import edit_resource
from scheduler.services.settle import Report, settle
from tests.support.work import HandWorker, make_bucket, make_pool, make_semaphore, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db


def test_a_ready_task_starts_under_a_lease_with_its_payload() -> None:
    tenant, pool = make_tenant(), make_pool(timeout_s=7.0)
    (task,) = submit_tasks(tenant, payload='{"hello": [1, 2]}', kind="greet", key="k1")
    (leased,) = HandWorker({pool: 10}).start()
    assert (leased.task, leased.attempt, leased.kind, leased.key, leased.timeout_s) == (task, 1, "greet", "k1", 7.0)
    assert leased.payload is not None
    assert '"hello": [1, 2]' in leased.payload
    assert state_of(task) == "running"
    assert Lease.objects.get(task_id=task).attempt == 1


def test_a_tasks_own_timeout_goes_before_its_pools() -> None:
    tenant, pool = make_tenant(), make_pool(timeout_s=7.0)
    submit_tasks(tenant, timeout_s=3.0)
    assert [leased.timeout_s for leased in HandWorker({pool: 10}).start()] == [3.0]


def test_slots_bound_what_runs_over_all_workers() -> None:
    tenant, pool = make_tenant(), make_pool(slots=3)
    submit_tasks(tenant, 10)
    one, two = HandWorker({pool: 10}), HandWorker({pool: 10})
    given = one.dispatch().leased + two.dispatch().leased
    assert len(given) == 3
    assert max(Counter(leased.worker for leased in given).values()) == 2, "the least loaded worker takes the next"


def test_a_workers_own_slots_bound_what_it_is_given() -> None:
    tenant, pool = make_tenant(), make_pool(slots=10)
    submit_tasks(tenant, 10)
    worker = HandWorker({pool: 2})
    assert len(worker.start()) == 2
    assert worker.start() == []


def test_a_paused_pool_starts_nothing() -> None:
    tenant, pool = make_tenant(), make_pool(paused_at="2026-01-01T00:00:00Z")
    submit_tasks(tenant)
    assert HandWorker({pool: 10}).start() == []


def test_a_suspended_tenants_work_waits_and_others_go() -> None:
    pool = make_pool()
    submit_tasks(make_tenant("frozen", status="suspended"))
    (task,) = submit_tasks(make_tenant("free"))
    assert [leased.task for leased in HandWorker({pool: 10}).start()] == [task]


def test_permits_are_what_live_leases_hold() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_semaphore("door", 2)
    submit_tasks(tenant, 5, resources={"door": 1.0})
    worker = HandWorker({pool: 10})
    first = worker.start()
    assert len(first) == 2
    assert worker.start() == []
    worker.succeed(first[:1])
    assert len(worker.start()) == 1


def test_a_bucket_is_drawn_on_and_what_waits_knows_when_to_look_again() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("api", rate=2.0, burst=3.0)
    submit_tasks(tenant, 5, resources={"api": 1.0})
    done = HandWorker({pool: 10}).dispatch()
    assert len(done.leased) == 3
    assert done.holds[pool].reason is WaitReason.RESOURCE
    assert done.look_again_at is not None
    assert done.look_again_at - done.now == pytest.approx(0.5)
    assert ResourceState.objects.get(resource__name="api").level == pytest.approx(0.0)


def test_high_goes_before_low_and_fifo_within_a_class() -> None:
    tenant, pool = make_tenant(), make_pool(slots=3)
    low = submit_tasks(tenant, 2, priority=PriorityClass.LOW)
    high = submit_tasks(tenant, 2, priority=PriorityClass.HIGH)
    started = [leased.task for leased in HandWorker({pool: 10}).start()]
    assert started == [*high, low[0]]


def test_work_that_needs_nothing_passes_a_blocked_head() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("empty", rate=0.001, burst=1.0)
    make_semaphore("gate", 1)
    submit_tasks(tenant, 3, resources={"empty": 1.0}, priority=PriorityClass.CRITICAL)
    free = submit_tasks(tenant, 3)
    started = {leased.task for leased in HandWorker({pool: 10}).start()}
    assert set(free) <= started
    assert len(started) == 4


def test_a_worker_not_seen_lately_gets_nothing() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_tasks(tenant)
    HandWorker({pool: 10})
    with connection.cursor() as cursor:
        cursor.execute("UPDATE worker SET seen_at = now() - interval '1 hour'")
    assert HandWorker({}).dispatch().leased == ()


def test_ids_beyond_32_bits_work_everywhere() -> None:
    tenant, pool = make_tenant(), make_pool()
    with connection.cursor() as cursor:
        for sequence in ("task_id_seq", "lease_lease_id_seq"):
            cursor.execute("SELECT setval(%s, 5000000000)", [sequence])
    (task,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    leased = worker.start()
    assert leased[0].task == task > 5_000_000_000
    assert leased[0].lease > 5_000_000_000
    worker.succeed(leased)
    assert Attempt.objects.get(task_id=task).outcome == "succeeded"


def test_a_released_task_gives_its_attempt_back_and_keeps_its_place() -> None:
    tenant, pool = make_tenant(), make_pool(slots=1)
    first, _second = submit_tasks(tenant, 2)
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    settle([Report(leased.lease, Outcome.RELEASED)])
    assert Task.objects.get(pk=first).attempts == 0
    assert [again.task for again in worker.start()] == [first]


def test_an_edited_rate_counts_from_the_edit_on() -> None:
    tenant, pool = make_tenant(), make_pool(slots=100)
    make_bucket("api", rate=0.001, burst=50.0)
    submit_tasks(tenant, 60, resources={"api": 1.0})
    worker = HandWorker({pool: 100})
    assert len(worker.start()) == 50
    with connection.cursor() as cursor:
        cursor.execute("UPDATE resource_state SET level_at = now() - interval '20 seconds'")
    edit_resource("api", 1, {"rate": 2.0}, actor="test")
    assert worker.start() == [], "the 20 seconds before the edit refill at the old rate"


def test_work_for_a_limit_that_is_gone_waits_and_stops_nobody() -> None:
    tenant, pool = make_tenant(), make_pool()
    make_bucket("gone", rate=1.0, burst=5.0)
    (waiting,) = submit_tasks(tenant, resources={"gone": 1.0}, priority=PriorityClass.CRITICAL)
    (free,) = submit_tasks(tenant)
    Resource.objects.all().delete()
    assert [leased.task for leased in HandWorker({pool: 10}).start()] == [free]
    assert state_of(waiting) == "ready"


def test_a_task_whose_needs_are_not_on_record_waits_and_stops_nobody() -> None:
    tenant, worker = make_tenant(), HandWorker({make_pool(): 10})
    lost, free = submit_tasks(tenant, 2)
    Task.objects.filter(pk=lost).update(demand_id=9_999)
    assert [leased.task for leased in worker.start()] == [free]
    assert state_of(lost) == "ready"


def test_work_for_a_limit_that_was_not_known_yet_is_not_forgotten() -> None:
    """A plan locks the limits before it reads the lanes: one that is added in between is known to the next plan."""
    tenant, worker = make_tenant(), HandWorker({make_pool(): 10})
    make_bucket("new", rate=1.0, burst=5.0)
    (task,) = submit_tasks(tenant, resources={"new": 1.0})
    book, state = LaneBook(), ResourceState.objects.get()
    ResourceState.objects.all().delete()
    assert dispatch(me=worker.id, book=book).leased == ()
    state.save(force_insert=True)
    assert [leased.task for leased in dispatch(me=worker.id, book=book).leased] == [task]
