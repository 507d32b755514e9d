"""The counts equal the tasks, whatever happened to them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import connection

from scheduler.policy.types import Outcome, PriorityClass
from scheduler.services.cancel import cancel
from scheduler.services.replay import replay
from scheduler.services.settle import Report, settle
from scheduler.services.snapshot import take_snapshot
from scheduler.store import overview
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db


def check() -> None:
    counted = {key: n for key, n in overview.load_counts().items() if n and key[2] != "started"}
    assert counted == overview.recount()


@pytest.mark.parametrize("seed", range(5))
def test_counts_follow_every_path_a_task_can_take(seed: int) -> None:
    chance = random.Random(seed)
    tenants = [make_tenant("a"), make_tenant("b")]
    pool = make_pool(slots=7, max_attempts=2, backoff_initial_s=0.0)
    worker = HandWorker({pool: 7})
    tasks = []
    started = 0
    for _ in range(25):
        match chance.randrange(6):
            case 0 | 1:
                tasks += submit_tasks(
                    chance.choice(tenants),
                    chance.randint(1, 5),
                    priority=chance.choice(list(PriorityClass)),
                    start_in_s=chance.choice([None, None, 50.0]),
                )
            case 2 | 3:
                leased = worker.start()
                started += len(leased)
                outcomes = [chance.choice(list(Outcome)) for _ in leased]
                settle([Report(x.lease, o, result="1") for x, o in zip(leased, outcomes, strict=True)])
            case 4 if tasks:
                task = chance.choice(tasks)
                if state_of(task) in {"ready", "scheduled", "retrying", "running"}:
                    cancel(task, None, actor="test")
                elif state_of(task) in {"failed", "dead_lettered"}:
                    replay(task, None, actor="test")
            case _:
                overview.fold_counts()
        check()
    assert sum(n for key, n in overview.load_counts().items() if key[2] == "started") == started


def test_deleting_and_editing_by_hand_is_counted_too() -> None:
    tenant = make_tenant()
    make_pool()
    submit_tasks(tenant, 5)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET priority = 0 WHERE id = (SELECT min(id) FROM task)")
        cursor.execute("DELETE FROM task WHERE id = (SELECT max(id) FROM task)")
    check()


def test_folding_keeps_the_sums() -> None:
    tenant = make_tenant()
    make_pool()
    submit_tasks(tenant, 5)
    before = overview.load_counts()
    assert overview.fold_counts() == 1
    assert overview.load_counts() == before
    assert overview.fold_counts() == 0


def test_the_snapshot_says_what_is_there() -> None:
    tenant, pool = make_tenant(), make_pool("p", slots=2)
    submit_tasks(tenant, 5, priority=PriorityClass.HIGH)
    submit_tasks(tenant, 1, start_in_s=60.0)
    worker = HandWorker({pool: 2})
    first = take_snapshot(None, {}, interval_s=1.0)
    done = worker.dispatch()
    worker.succeed(done.leased[:1])
    take_snapshot(first, done.holds, interval_s=1.0)
    row = overview.load_latest_snapshot()
    assert row is not None
    body: dict[str, Any] = row.body
    assert body["seq"] == row.seq
    shown: dict[str, Any] = body["pools"][0]
    assert shown["waiting"] == {"critical": 0, "high": 3, "normal": 0, "low": 0}
    assert (shown["running"], shown["scheduled"], shown["slots"], shown["state"]) == (1, 1, 2, "running")
    assert shown["started_per_s"] > 0
    assert shown["oldest_waiting_s"] is not None
    assert body["history"]["waiting"] == [5, 3]
    assert body["workers"][0]["busy"] == 1
