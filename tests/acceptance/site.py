"""An installation on an external database: engines and webs as processes of their own."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.models import Attempt, Lease, Task, Worker
from scheduler.policy.types import TaskId
from tests.support.processes import Running, environment, free_port, running, status_of
from tests.support.waiting import wait_until


@dataclass(slots=True)
class Site:
    """Where processes find each other. `variables` go into the environment of each."""

    database_url: str
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def environ(self, port: int = 8_000) -> dict[str, str]:
        """What the processes get."""
        return environment(
            DATABASE_URL=self.database_url,
            CRONOQ_DATA_DIR=str(self.folder / "data"),
            CRONOQ_SECRET_KEY="one secret key for all processes of a site",
            CRONOQ_ALLOWED_HOSTS="127.0.0.1",
            CRONOQ_ORIGINS=f"http://127.0.0.1:{port}",
            PORT=str(port),
            **self.variables,
        )

    @contextmanager
    def engine(self) -> Iterator[Running]:
        """One engine, registered."""
        with self.engine_coming_up() as program:
            wait_until(lambda: is_registered(program), what=f"the engine: {program.text()}")
            yield program

    @contextmanager
    def engine_coming_up(self) -> Iterator[Running]:
        """One engine, just started."""
        command = [sys.executable, "manage.py", "engine"]
        with running(command, self.folder / f"engine-{uuid.uuid4().hex[:8]}", environ=self.environ()) as program:
            yield program

    @contextmanager
    def engines(self, count: int) -> Iterator[list[Running]]:
        """Several engines, started together."""
        with ExitStack() as stack:
            programs = [stack.enter_context(self.engine_coming_up()) for _ in range(count)]
            for program in programs:
                wait_until(lambda p=program: is_registered(p), what=f"the engine: {program.text()}")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            yield programs

    @contextmanager
    def web(self) -> Iterator[Web]:
        """One web process, answering."""
        with self.web_coming_up() as (web, program):
            web.wait_until_up(program)
            yield web

    @contextmanager
    def web_coming_up(self) -> Iterator[tuple[Web, Running]]:
        """One web process, just started."""
        web = Web(free_port())
        daphne = [sys.executable, "-m", "daphne", "--bind", "127.0.0.1", "--port", str(web.port)]
        command = [*daphne, "cronoq_app.asgi:application"]
        with running(command, self.folder / f"web-{web.port}", environ=self.environ(web.port)) as program:
            yield web, program


@dataclass(frozen=True, slots=True)
class Web:
    """One web process."""

    port: int

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def wait_until_up(self, program: Running) -> None:
        """Wait until it answers."""
        wait_until(lambda: status_of(f"{self.url}/healthz") == 200, what=f"the web: {program.text()}")

    def call(self, method: str, path: str, body: object = None, *, token: str) -> tuple[int, Any]:
        """One call of the REST API; the status and the decoded answer."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=70) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


def worker_of(program: Running) -> Worker | None:
    """An engine process as the database knows it."""
    return Worker.objects.filter(name__endswith=f":{program.process.pid}").first()


def is_registered(program: Running) -> bool:
    """Whether the engine offers its slots; one that has ended instead fails the test with what it said."""
    assert program.process.poll() is None, program.text()
    return worker_of(program) is not None


def wait_for_all(state: str = "succeeded", *, timeout_s: float, said: list[Running]) -> None:
    """Wait until every task is in a state; otherwise say what the others are and what the programs said last."""
    try:
        wait_until(lambda: not Task.objects.exclude(state=state).exists(), timeout_s=timeout_s)
    except AssertionError:
        others = Task.objects.exclude(state=state)
        lines = [f"{others.count()} of {Task.objects.count()} tasks are not {state}:"]
        lines += [describe(TaskId(task)) for task in others.values_list("pk", flat=True)[:5]]
        lines += [program.text()[-1_500:] for program in said]
        raise AssertionError("\n".join(lines)) from None


def describe(task: TaskId) -> str:
    """What the database says about a task."""
    row = Task.objects.get(pk=task)
    leases = list(Lease.objects.filter(task_id=task).values_list("lease_id", "attempt", "picked_up", "expires_at"))
    history = list(
        Attempt.objects.filter(task_id=task).order_by("lease_id").values_list("number", "outcome", "message")
    )
    return f"task {task}: {row.state}, attempts {row.attempts}, leases {leases}, history {history}"
