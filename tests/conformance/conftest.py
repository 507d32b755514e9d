"""A served product with an engine, a line that can be cut, and workers of each kind as processes."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.db.models import F
from pytest_django import DjangoDbBlocker

from scheduler.engine.runner import Engine
from scheduler.models import Lease, Pool, Worker
from scheduler.services.tenants import add_tenant
from scheduler.services.tokens import create_token, forget_tokens
from tests.support import database
from tests.support.line import Line
from tests.support.processes import ROOT, Running, environment, running
from tests.support.server import running_server
from tests.support.waiting import wait_until
from tests.support.work import make_pool

TTL_S = 4.0
KINDS = ["python", "python-poll", "node-poll", "node-socket"]
FAULTY = pytest.mark.parametrize("kind", ["python", "python-poll", "node-poll"], indirect=True, scope="package")
"""For what goes wrong outside a worker: both languages and both ways to be connected, not each with each."""
SCRIPT = Path(__file__).parent / "worker.mjs"
POOL = "remote"


@dataclass(slots=True)
class Site:
    """A served product. `token` may submit and work for acme."""

    url: str
    database_url: str
    token: str
    rival: str
    folder: Path
    api: httpx2.Client
    started: int = field(default=0)

    def submit(self, *payloads: Any, **fields: Any) -> list[int]:
        """Tasks with these payloads."""
        tasks = [{"pool": POOL, "payload": payload, **fields} for payload in payloads]
        answer = self.api.post("/tasks/batch", json={"tasks": tasks})
        assert answer.status_code == 202, answer.text
        return [task["id"] for task in answer.json()["tasks"]]

    def signal(self) -> Path:
        """A file that is not there yet. Who awaits it goes on when the test makes it."""
        return self.folder / f"signal-{uuid.uuid4().hex}"

    def task(self, task: int) -> dict[str, Any]:
        """A task as it is now."""
        found: dict[str, Any] = self.api.get(f"/tasks/{task}").json()
        return found

    def ended(self, task: int, *, within_s: float = 30.0) -> dict[str, Any]:
        """A task when it has ended."""
        found: dict[str, Any] = self.api.get(f"/tasks/{task}/wait", params={"timeout_s": within_s}).json()
        return found

    def wait_for(self, task: int, state: str, *, timeout_s: float = 20.0) -> dict[str, Any]:
        """A task as soon as it is in a state."""
        wait_until(lambda: self.task(task)["state"] == state, timeout_s=timeout_s, what=f"task {task} to be {state}")
        return self.task(task)

    def wait_for_renewal(self, task: int) -> dict[str, Any]:
        """A task whose worker really has it: it has renewed the lease."""
        renewed = Lease.objects.filter(task_id=task, expires_at__gt=F("started_at") + timedelta(seconds=TTL_S + 0.1))
        wait_until(renewed.exists, what=f"the lease of task {task} to be renewed")
        return self.task(task)

    def wait_for_next_renewal(self, task: int) -> None:
        """Its worker has it still, whatever has happened meanwhile: the lease is renewed once more."""
        until = Lease.objects.get(task_id=task).expires_at
        renewed = Lease.objects.filter(task_id=task, expires_at__gt=until)
        wait_until(renewed.exists, what=f"the lease of task {task} to be renewed again")

    @contextmanager
    def worker(
        self, kind: str, *, url: str | None = None, slots: int = 8, token: str | None = None, **changes: str
    ) -> Iterator[Running]:
        """A worker that offers its slots."""
        before = set(Worker.objects.filter(kind="remote").values_list("pk", flat=True))
        with self.worker_coming_up(kind, url=url, slots=slots, token=token, **changes) as program:
            new = Worker.objects.filter(kind="remote").exclude(pk__in=before).exclude(slots={})
            wait_until(lambda: program.process.poll() is not None or new.exists(), what=program.text())
            assert program.process.poll() is None, program.text()
            yield program

    @contextmanager
    def worker_coming_up(
        self,
        kind: str,
        *,
        url: str | None = None,
        slots: int = 8,
        token: str | None = None,
        pool: str = POOL,
        labels: str = "",
        skew_s: str = "0",
    ) -> Iterator[Running]:
        """A worker that was started."""
        self.started += 1
        words = [url or self.url, token or self.token, pool, str(slots), *labels.split()]
        output = self.folder / f"worker-{self.started}"
        with running([*command(kind), *words], output, environ=environment(SKEW_S=skew_s), cwd=ROOT) as program:
            yield program
            with suppress(ProcessLookupError):
                program.process.send_signal(signal.SIGCONT)


def port_of(url: str) -> int:
    """The port in an address."""
    return int(url.rpartition(":")[2])


def command(kind: str) -> list[str]:
    """What starts a worker of a kind."""
    if kind.startswith("python"):
        return [sys.executable, "-m", "tests.conformance.worker", "poll" if kind == "python-poll" else "websocket"]
    flags = ["--no-warnings", *([] if kind == "node-poll" else socket_flags() or [])]
    return [str(shutil.which("node")), *flags, str(SCRIPT), kind.removeprefix("node-")]


@cache
def socket_flags() -> list[str] | None:
    """What Node needs to have a websocket; None when it has none."""
    node = shutil.which("node")
    for flags in ([], ["--experimental-websocket"]):
        said = subprocess.run(
            [str(node), *flags, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"],
            check=False,
            capture_output=True,
        )
        if said.returncode == 0:
            return flags
    return None


@pytest.fixture(scope="package")
def site(
    django_db_setup: str, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The product, served, with an engine that leads."""
    with django_db_blocker.unblock():
        try:
            for slug in ("acme", "globex"):
                add_tenant(slug, actor="test")
            scopes = ["submit", "read", "work", "operate"]
            token, rival = (create_token(scopes=scopes, tenant=t, actor="test").text for t in ("acme", "globex"))
            make_pool(POOL, executor="remote", slots=100, lease_ttl_s=TTL_S, backoff_initial_s=0.0)
            with running_server(database.url_of(django_db_setup)) as url, engine_in_a_thread():
                headers = {"Authorization": f"Bearer {token}"}
                with httpx2.Client(base_url=f"{url}/api/v1", headers=headers, timeout=70, trust_env=False) as api:
                    yield Site(
                        url, database.url_of(django_db_setup), token, rival, tmp_path_factory.mktemp("workers"), api
                    )
        finally:
            database.empty_tables(django_db_setup)
            forget_tokens()


@contextmanager
def engine_in_a_thread() -> Iterator[None]:
    """An engine that leads, on a loop of its own."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    engine = Engine()
    thread = threading.Thread(target=lambda: loop.run_until_complete(engine.run(stop)))
    thread.start()
    try:
        wait_until(lambda: engine.leading, timeout_s=30, what="the engine to lead")
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one kind together when several processes share them: each kind needs a site once."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if "tests/conformance/" in item.path.as_posix() and callspec is not None:
            item.add_marker(pytest.mark.xdist_group(f"conformance {callspec.params['kind']}"))


@pytest.fixture(scope="package", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of worker; those in Node only where there is Node."""
    kind = str(request.param)
    if kind.startswith("node") and shutil.which("node") is None:
        pytest.skip("There is no Node.js on this machine.")
    if kind == "node-socket" and socket_flags() is None:
        pytest.skip("This Node.js has no WebSocket built in.")
    return kind


@pytest.fixture
def pool() -> Pool:
    """The pool of remote workers."""
    return Pool.objects.get(name=POOL)


@pytest.fixture
def line(site: Site) -> Iterator[Line]:
    """A line to the server."""
    made = Line(port_of(site.url))
    yield made
    made.close()
