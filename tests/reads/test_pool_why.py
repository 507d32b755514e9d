"""Why a pool does not start more, from what the database and the newest plan say."""

from __future__ import annotations

import pytest

from scheduler.policy.types import PoolId, PriorityClass
from scheduler.reads.pool_why import pool_why
from scheduler.services.snapshot import take_snapshot
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def codes(pool: str = "p") -> list[str]:
    return [reason.code for reason in pool_why(pool).reasons]


def test_full_slots_and_short_limits_are_named_together() -> None:
    pool: PoolId = make_pool(slots=1)
    make_bucket("openai", rate=0.01, burst=1.0)
    submit_tasks(make_tenant(), 3, resources={"openai": 1.0})
    worker = HandWorker({pool: 5})
    assert codes() == ["next"]
    worker.start()
    assert codes() == ["no_free_slot"]
    pool_two = make_pool("q", slots=5)
    submit_tasks(make_tenant("globex"), 3, resources={"openai": 1.0}, pool="q")
    done = HandWorker({pool_two: 5}).dispatch()
    take_snapshot(None, done.holds, interval_s=1.0)
    found = pool_why("q")
    assert found.reasons[0].code == "resource"
    assert found.reasons[0].text.startswith("The limit openai is short: the next task can start in ")


def test_the_task_that_waits_longest_in_each_class() -> None:
    make_pool()
    tenant = make_tenant()
    first = submit_tasks(tenant, 2, priority=PriorityClass.LOW)[0]
    high = submit_tasks(tenant, 1, priority=PriorityClass.HIGH)[0]
    take_snapshot(None, {}, interval_s=1.0)
    by_class = {each.name: each for each in pool_why("p").classes}
    assert (by_class["low"].oldest_task, by_class["low"].waiting) == (first, 2)
    assert by_class["high"].oldest_task == high
    assert by_class["critical"].oldest_task is None


def test_a_pool_without_work_is_idle_or_paused() -> None:
    make_pool()
    make_pool("halted", paused_at="2026-01-01T00:00:00Z", paused_by="ada", pause_reason="lunch")
    assert codes() == ["idle"]
    assert codes("halted") == ["pool_paused"]
