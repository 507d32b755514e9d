"""An installation of two webs and two engines on one database: it does not matter which of them one meets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scheduler.models import Attempt, Task, Worker
from scheduler.services.seeding import SIM_PRICE
from scheduler.services.tokens import create_token
from tests.acceptance import handlers
from tests.acceptance.site import Site, Web
from tests.support.provider import running_provider
from tests.support.waiting import wait_until
from tests.support.work import make_bucket, make_pool, make_semaphore, make_tenant, submit_tasks

pytestmark = pytest.mark.acceptance

TASKS = 40


def test_submit_through_one_web_wait_through_the_other_while_engines_come_and_go(site: Site) -> None:
    with (
        running_provider(latency_median_s=0.1) as provider,
        site.web() as first,
        site.web() as second,
        site.engines(2) as engines,
    ):
        make_tenant()
        make_bucket("openai", rate=500, burst=500)
        make_semaphore("openai-concurrency", 10)
        config = {"base_url": provider.base_url, "model": "sim-small", "quota_resource": "openai", **SIM_PRICE}
        make_pool("llm", executor="llm", slots=10, config=config)
        token = create_token(scopes=("submit", "read"), tenant="acme", name="test", actor="test").text
        wait_until(lambda: Worker.objects.exclude(slots={}).count() == 2, what="both engines to offer the pool")
        ended = submit_and_wait(first, second, token)
        assert [task["state"] for task in ended] == ["succeeded"] * TASKS, ended
        assert Attempt.objects.values("worker_id").distinct().count() == 2
        # One engine is told to go; the other does the rest, and nothing is tried twice.
        engines[0].process.terminate()
        ended = submit_and_wait(second, first, token)
        assert engines[0].wait() == 0, engines[0].text()
        assert [task["state"] for task in ended] == ["succeeded"] * TASKS, ended
        assert set(Attempt.objects.values_list("outcome", flat=True)) <= {"succeeded", "released"}
        assert provider.stats(arrivals=False)["by_status"] == {"200": 2 * TASKS}
    assert Worker.objects.count() <= 1


def submit_and_wait(one: Web, other: Web, token: str) -> list[dict[str, Any]]:
    """Submit through one web, wait through the other; how the tasks ended."""

    def chat(number: int) -> dict[str, Any]:
        body = {
            "pool": "llm",
            "payload": {"messages": [{"role": "user", "content": f"Hello {number}."}]},
            "resources": {"openai": 1, "openai-concurrency": 1},
        }
        status, accepted = one.call("POST", "/tasks", body, token=token)
        assert status == 202, accepted
        status, task = other.call("GET", f"/tasks/{accepted['id']}/wait?timeout_s=40", token=token)
        assert status == 200, task
        found: dict[str, Any] = task
        return found

    with ThreadPoolExecutor(8) as clients:
        return list(clients.map(chat, range(TASKS)))


def test_a_plain_function_that_does_not_end_keeps_no_engine_from_ending(site: Site, tmp_path: Path) -> None:
    written = tmp_path / "runs"
    site.variables |= {handlers.RUNS: str(written), "CRONOQ_SHUTDOWN_GRACE_S": "0.2"}
    make_pool(config={"handler": f"{handlers.__name__}:first_waits"})
    with site.engine() as engine:
        [task] = submit_tasks(make_tenant(), payload=f'"{tmp_path / "never"}"')
        wait_until(lambda: handlers.runs(written), what="the handler to begin")
        engine.process.terminate()
        assert engine.wait(20) == 0, engine.text()
    assert (Task.objects.get(pk=task).state, Task.objects.get(pk=task).attempts) == ("ready", 0)
