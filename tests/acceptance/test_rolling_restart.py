"""Everything is replaced under load, one after the other, and a worker is killed: nothing is lost or done twice."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scheduler.models import Attempt, Lease, Task, Worker
from scheduler.sdk import Client
from scheduler.services.tokens import create_token
from scheduler.store.dispatch import load_now
from tests.acceptance.site import Site, is_registered, wait_for_all
from tests.support.line import Line
from tests.support.processes import Running, environment, running
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant

pytestmark = pytest.mark.acceptance

TTL_S = 5.0
CLIENTS = 6
SLOTS = 4
PAYLOAD = {"do": "sleep", "seconds": 0.1}


@dataclass(slots=True)
class Load:
    """Clients that submit and wait, until told to stop. `faults` are what they were raised."""

    url: str
    token: str
    done: list[int] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """One client."""
        with Client(self.url, token=self.token, timeout=60.0) as client:
            while not self.stop.is_set():
                try:
                    task = client.submit(PAYLOAD, pool="remote").id
                    assert client.wait(task, timeout=60.0).state == "succeeded"
                except Exception as error:  # noqa: BLE001 - the test says what it was
                    self.faults.append(error)
                    return
                self.done.append(task)

    def wait_for_more(self, count: int = 20) -> None:
        """Wait until so many more are done."""
        wanted = len(self.done) + count
        wait_until(lambda: len(self.done) >= wanted or self.faults, what=f"{wanted} tasks")


@contextmanager
def load(url: str, token: str) -> Iterator[Load]:
    """Clients at work until the block ends."""
    made = Load(url, token)
    threads = [threading.Thread(target=made.run, daemon=True) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        made.stop.set()
        for thread in threads:
            thread.join(70.0)


@contextmanager
def worker(url: str, token: str, output: Path) -> Iterator[Running]:
    """A worker of the SDK in a process of its own."""
    command = [sys.executable, "-m", "tests.conformance.worker", "websocket", url, token, "remote", str(SLOTS)]
    with running(command, output, environ=environment()) as program:
        yield program


def leave(program: Running) -> None:
    """Tell a process to end, and wait until it did."""
    program.process.terminate()
    assert program.wait(30) == 0, program.text()


def kill_at_work(doomed: Running) -> tuple[float, list[int]]:
    """Kill a worker that holds leases: when, by the database's clock, and the tasks that it held."""

    def held() -> list[int]:
        known = Worker.objects.filter(name__endswith=f":{doomed.process.pid}").first()
        return [] if known is None else list(Lease.objects.filter(worker_id=known.pk).values_list("task_id", flat=True))

    wait_until(lambda: len(held()) > 1, timeout_s=30, what="the worker to be busy")
    doomed.process.kill()
    return load_now(), held()


@pytest.mark.timeout(600)
def test_processes_are_replaced_under_load_and_a_worker_is_killed(site: Site, tmp_path: Path) -> None:
    make_tenant()
    make_pool("remote", executor="remote", slots=3 * SLOTS, lease_ttl_s=TTL_S)
    token = create_token(scopes=["submit", "read", "work"], tenant="acme", actor="test").text
    with (
        site.web_coming_up() as (web, web_program),
        site.engine_coming_up() as engine,
        site.web_coming_up() as (next_web, next_web_program),
        site.engine_coming_up() as next_engine,
    ):
        web.wait_until_up(web_program)
        front = Line(web.port, next_web.port)
        with worker(front.url, token, tmp_path / "doomed") as doomed, worker(front.url, token, tmp_path / "other"):
            for program in (engine, next_engine):
                wait_until(lambda p=program: is_registered(p), what="an engine")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            with load(front.url, token) as crowd:
                crowd.wait_for_more()
                next_web.wait_until_up(next_web_program)
                leave(web_program)
                crowd.wait_for_more()
                leave(engine)
                crowd.wait_for_more()
                killed_at, held = kill_at_work(doomed)
                crowd.wait_for_more()
            wait_for_all(timeout_s=180, said=[next_engine, next_web_program])
        front.close()
    assert crowd.faults == []
    assert sorted(crowd.done) == sorted(Task.objects.values_list("pk", flat=True))
    succeeded = Counter(Attempt.objects.filter(outcome="succeeded").values_list("task_id", flat=True))
    assert succeeded == Counter(crowd.done)
    lost = Attempt.objects.filter(outcome="lost").values_list("task_id", flat=True)
    assert set(lost) <= set(held), "a worker that lives has lost a lease"
    taken_up = Attempt.objects.filter(task_id__in=lost, outcome="succeeded")
    # None is lost where all that it held had been offered and not fetched: that goes back unspent.
    assert all(each.started_at.timestamp() - killed_at <= TTL_S + 5.0 for each in taken_up)
