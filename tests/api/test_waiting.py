"""Clients that wait, by the hundred, and a database that goes away."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import psycopg
import pytest
from psycopg import sql

from scheduler.models import Pool
from scheduler.policy.types import FailureClass, PoolId
from scheduler.reads.pools import pool_detail
from tests.api.conftest import Site
from tests.support import database
from tests.support.waiting import wait_until
from tests.support.work import HandWorker

TASK = {"pool": "llm", "payload": {"n": 1}}
WAITERS = 300


def test_hundreds_wait_and_each_gets_its_own_answer(site: Site, api: httpx2.Client) -> None:
    pool = PoolId(Pool.objects.get(name="llm").pk)
    batch = api.post("/tasks/batch", json={"tasks": [{**TASK, "payload": n} for n in range(20)]}).json()
    ids = [task["id"] for task in batch["tasks"]]

    async def wait_for_all() -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=WAITERS)
        headers = {"Authorization": f"Bearer {site.token}"}
        async with httpx2.AsyncClient(
            base_url=f"{site.url}/api/v1", headers=headers, limits=limits, timeout=60.0, trust_env=False
        ) as client:
            waiting = [
                asyncio.create_task(client.get(f"/tasks/{ids[n % 20]}/wait", params={"timeout_s": 40}))
                for n in range(WAITERS)
            ]
            # Others are served while they wait: no thread and no connection is theirs.
            assert (await client.get("/pools")).status_code == 200
            await asyncio.to_thread(settle_all)
            return await asyncio.gather(*waiting)

    def settle_all() -> None:
        worker = HandWorker({pool: 32})
        leased = {task.task: task for task in worker.start()}
        worker.fail([leased.pop(ids[0])], FailureClass.PERMANENT)
        worker.succeed(list(leased.values()))

    answers = asyncio.run(wait_for_all())
    assert {answer.status_code for answer in answers} == {200}
    bodies = {answer.json()["id"]: answer.json() for answer in answers}
    assert sorted(bodies) == ids
    assert [bodies[task]["state"] for task in ids] == ["failed"] + ["succeeded"] * 19
    assert bodies[ids[1]]["result"] == "done"
    assert bodies[ids[0]]["history"][0]["failure_class"] == "permanent"
    assert api.get(f"/tasks/{ids[1]}/result").json() == {"id": ids[1], "state": "succeeded", "result": "done"}
    replayed = api.post(f"/tasks/{ids[0]}/replay", json={"reason": "mended"})
    assert replayed.json() == {"id": ids[0], "state": "ready"}
    assert pool_detail("llm").waiting["normal"] >= 1


@contextmanager
def unreachable(name: str) -> Iterator[None]:
    """Have the database end every session and take no new one."""
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(database.url_of("postgres"), autocommit=True) as admin:
        try:
            admin.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
            admin.execute(end, (name,))
            yield
        finally:
            admin.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


def test_without_its_database_the_api_says_when_to_come_back(
    site: Site, api: httpx2.Client, django_db_setup: str
) -> None:
    assert api.post("/tasks", json=TASK).status_code == 202
    database.close_connections()
    with unreachable(django_db_setup):
        for answer in (api.post("/tasks", json=TASK), api.get("/tasks")):
            assert answer.status_code == 503
            assert answer.json()["code"] == "database_unavailable"
            assert answer.headers["Retry-After"] == "2"
        ready = httpx2.get(f"{site.url}/readyz", timeout=30.0, trust_env=False)
        assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
        assert httpx2.get(f"{site.url}/healthz", trust_env=False).status_code == 200
    wait_until(lambda: api.post("/tasks", json=TASK).status_code == 202, what="submissions to be taken again")
    wait_until(lambda: api.get("/tasks").status_code == 200, what="lists to be read again")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_wrong_method_is_told_the_right_ones(api: httpx2.Client, method: str) -> None:
    answer = api.request(method, "/tasks")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "POST"}
