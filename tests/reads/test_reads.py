"""What pages and the API are told, against a database with work in it."""

import pytest

from scheduler.errors import NotFound, Refused
from scheduler.policy.admission import Submission
from scheduler.policy.states import TaskState
from scheduler.policy.types import FailureClass, PriorityClass, TaskId
from scheduler.reads.health import health
from scheduler.reads.pools import pool_detail
from scheduler.reads.resources import list_resources, resource_detail
from scheduler.reads.snapshot import latest_snapshot
from scheduler.reads.tasks import TaskQuery, list_tasks, task_detail, task_payload
from scheduler.reads.why import why
from scheduler.services.pools import pause_pool
from scheduler.services.submit import submit_batch
from tests.support.work import HandWorker, make_bucket, make_pool, make_semaphore, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def codes(task: TaskId) -> list[str]:
    return [reason.code for reason in why(task, None).reasons]


def test_why_follows_a_task_through_its_life() -> None:
    tenant = make_tenant()
    pool = make_pool(slots=1)
    make_bucket("tokens", rate=1.0, burst=2.0)
    first, second, third = submit_tasks(tenant, 3, resources={"tokens": 1.0})
    assert codes(first) == ["no_worker"]
    assert codes(third) == ["no_worker", "behind"]
    assert why(third, None).position == 2
    worker = HandWorker({pool: 4})
    (leased,) = worker.start()
    assert codes(first) == ["running"]
    assert codes(second) == ["no_free_slot"]
    worker.fail([leased], FailureClass.ERROR)
    assert codes(first) == ["retry_at"]
    assert why(first, None).reasons[0].text.endswith("Attempt 1 failed: it broke")
    assert why(first, None).position is None
    (again,) = worker.start()
    worker.succeed([again])
    assert codes(second) == ["succeeded"]
    assert codes(third) == ["resource"]
    assert why(third, None).reasons[0].detail["resource"] == "tokens"
    pause_pool("p", actor="ada", reason="lunch")
    assert codes(third)[0] == "pool_paused"


def test_the_position_counts_more_urgent_lanes_and_takes_turns_with_other_tenants() -> None:
    acme, globex = make_tenant(), make_tenant("globex")
    make_pool()
    submit_tasks(globex, 30)
    mine = submit_tasks(acme, 3)[-1]
    submit_tasks(globex, 5, priority=PriorityClass.CRITICAL)
    found = why(mine, None)
    # Two of its own lane, five critical ones, and one turn of the other tenant for each of ours, and its earlier head.
    assert found.position == 2 + 5 + 3


def test_a_task_shows_its_attempts_and_its_result() -> None:
    tenant = make_tenant()
    pool = make_pool(slots=1)
    make_semaphore("gpu", 2)
    (task,) = submit_tasks(tenant, payload='{"a": 1}', resources={"gpu": 1.0}, tags={"team": "x"})
    worker = HandWorker({pool: 1})
    worker.fail(worker.start(), FailureClass.PERMANENT)
    found = task_detail(task, tenant)
    assert (found.task.resource_names, found.task.amounts, found.task.tags) == (("gpu",), (1.0,), {"team": "x"})
    assert [(a.number, a.outcome, a.failure_class) for a in found.attempts] == [(1, "failed", "permanent")]
    assert task_payload(task, tenant) == '{"a": 1}'
    (other,) = submit_tasks(tenant)
    leased = worker.start()
    running = task_detail(other, tenant).running
    assert running is not None
    assert running.attempt == 1
    worker.succeed(leased)
    assert task_detail(other, tenant).result == '"done"'
    with pytest.raises(NotFound):
        task_detail(other, make_tenant("globex"))


def test_lists_go_on_where_they_stopped_whatever_comes_in_between() -> None:
    tenant = make_tenant()
    make_pool()
    old = submit_tasks(tenant, 5)
    first = list_tasks(TaskQuery(), tenant, cursor=None, rows_max=2)
    submit_tasks(tenant, 3)
    seen = [row.id for row in first.tasks]
    cursor = first.next_cursor
    while cursor is not None:
        page = list_tasks(TaskQuery(), tenant, cursor=cursor, rows_max=2)
        seen += [row.id for row in page.tasks]
        cursor = page.next_cursor
    assert seen == sorted(old, reverse=True)


def test_lists_are_narrowed_by_every_filter() -> None:
    tenant, rival = make_tenant(), make_tenant("globex")
    make_pool()
    make_pool("q")
    (a,) = submit_tasks(tenant, kind="chat", key="k1", priority=PriorityClass.HIGH)
    (b,) = submit_tasks(tenant, pool="q", start_in_s=60.0)
    (c,) = submit_tasks(rival, kind="chat")

    def ids(**query: object) -> set[TaskId]:
        page = list_tasks(TaskQuery(**query), None, cursor=None, rows_max=10)  # type: ignore[arg-type]  # a builder
        return {row.id for row in page.tasks}

    assert ids() == {a, b, c}
    assert ids(kinds=("chat",)) == {a, c}
    assert ids(pools=("q",)) == {b}
    assert ids(states=(TaskState.SCHEDULED,)) == {b}
    assert ids(priorities=(PriorityClass.HIGH,)) == {a}
    assert ids(key="k1") == {a}
    assert ids(tenant="globex") == {c}
    for query in ({"pools": ("nope",)}, {"tenant": "nope"}, {"tenant": "a\x00"}):
        with pytest.raises(Refused):
            ids(**query)


def test_limits_show_what_is_left_held_and_waited_for() -> None:
    tenant = make_tenant()
    pool = make_pool(slots=2)
    make_semaphore("gpu", 3)
    make_bucket("tokens", rate=1.0, burst=10.0)
    submit_tasks(tenant, 5, resources={"gpu": 1.0, "tokens": 2.0})
    HandWorker({pool: 2}).start()
    gpu, tokens = list_resources()
    assert (gpu.name, gpu.held, gpu.available, gpu.waiting) == ("gpu", 2.0, 1.0, 3)
    assert tokens.waiting == 3
    assert 6.0 <= tokens.available < 10.0
    assert not tokens.paused
    with pytest.raises(NotFound):
        resource_detail("nope")
    detail = pool_detail("p")
    assert (detail.running, detail.waiting["normal"], detail.scheduled) == (2, 3, 0)


def test_health_tells_what_is_missing() -> None:
    found = health()
    assert found.ready
    assert [check.name for check in found.checks if not check.ok] == ["engine"]
    HandWorker({make_pool(): 1})
    assert not health().degraded
    assert latest_snapshot() is None


def test_fifty_lanes_with_deadlines_are_looked_at_too() -> None:
    tenant = make_tenant()
    make_pool()
    submit_batch(tenant, [Submission(payload="1", pool="p", kind=str(n), deadline_in_s=1.0) for n in range(5)])
    (last,) = submit_tasks(tenant, priority=PriorityClass.LOW)
    assert why(last, None).position == 5
