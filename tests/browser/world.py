"""What the browser tests look at: a web process of its own, and the rows it shows, written from outside."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import connections
from django.db.models import Max
from django.test import Client

from scheduler.models import (
    Attempt,
    AuditEvent,
    BoundAccount,
    Checkpoint,
    Lease,
    Occurrence,
    Pool,
    Receipt,
    Resource,
    Run,
    Schedule,
    Snapshot,
    Task,
    TaskPayload,
    Tenant,
    Worker,
)
from scheduler.policy.roles import PERMISSIONS, Role
from scheduler.policy.types import FailureClass, PoolId
from tests.live import sample
from tests.support.audit import empty_audit
from tests.support.waiting import wait_until
from tests.support.work import HandWorker, make_bucket, make_tenant, submit_tasks

T = TypeVar("T")
VIEW = ["view_console"]
ROLES = {
    "nobody": [],
    "lookout": VIEW,
    "viewer": VIEW,
    "operator": [*VIEW, "operate_pool", "view_payload"],
    "admin": sorted(PERMISSIONS[Role.ADMIN]),
    "staff": sorted(PERMISSIONS[Role.ADMIN]),
    "limits": [*VIEW, "edit_resource_limit"],
}
PASSWORD = "correct horse battery staple"

# Never the same number twice in one run: a web process remembers the newest it saw.
_numbers = itertools.count(1000)


class World:
    """Writes and reads rows in a thread of its own, since a browser's event loop runs in the test's."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.newest = 0
        self._thread = ThreadPoolExecutor(1)

    def do(self, action: Callable[[], T]) -> T:
        return self._thread.submit(action).result(timeout=30)

    def snapshot(self, **changes: Any) -> int:
        """Write the next snapshot, taken now; `changes` replace parts of the sample. Returns its number."""
        number = next(_numbers)
        body = {**sample.body(1000), **changes}
        self.do(lambda: Snapshot.objects.create(seq=number, body=body))
        self.newest = number
        return number

    def wait_until_served(self) -> None:
        """Return once the web process, which looks once per second, answers with the newest snapshot."""
        if self.newest:
            wait_until(self._serves_the_newest, what="the web process to serve the newest snapshot")

    def _serves_the_newest(self) -> bool:
        request = Request(f"{self.url}/ops/_live/overview/", headers={"If-None-Match": f'"{self.newest}"'})
        request.add_header("Cookie", f"{settings.SESSION_COOKIE_NAME}={self._lookout}")
        try:
            urlopen(request, timeout=10).close()
        except HTTPError as error:
            return error.code == 304
        return False

    def waiting(self, number: int) -> int:
        """The next snapshot with this many tasks waiting."""
        return self.snapshot(totals={**sample.body(1000)["totals"], "waiting": number})

    def newest_waiting(self) -> int:
        newest = self.do(lambda: Snapshot.objects.aggregate(Max("seq"))["seq__max"])
        return int(self.do(lambda: Snapshot.objects.get(seq=newest).body["totals"]["waiting"]))

    def task(self) -> int:
        """A task of `llm` that has failed once and waits for another attempt."""
        return self.do(self._make_task)

    @staticmethod
    def _make_task() -> int:
        payload = '{"prompt": "Summarise the attached report. ' + "Be brief. " * 40 + '"}'
        tenant, pool = make_tenant(), PoolId(Pool.objects.get(name="llm").pk)
        task = submit_tasks(tenant, pool="llm", payload=payload, key="report-" + "7" * 60, kind="summary")[0]
        worker = HandWorker({pool: 1})
        worker.fail(worker.start(), FailureClass.THROTTLED, retry_after_s=1800.0)
        return task

    def pause_reason(self, name: str) -> str | None:
        pool = self.do(lambda: Pool.objects.get(name=name))
        return pool.pause_reason if pool.paused_at else None

    def audited(self) -> list[str]:
        return self.do(lambda: list(AuditEvent.objects.order_by("id").values_list("action", flat=True)))

    def cookie(self, role: str) -> str:
        """The session of a new person with that role."""
        return self.do(lambda: self._sign_in(role))

    def _sign_in(self, role: str) -> str:
        user = User.objects.create_user(role, password=PASSWORD, is_staff=role == "staff")
        user.user_permissions.set(Permission.objects.filter(codename__in=ROLES[role]))
        client = Client()
        client.force_login(user)
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    def sign_everybody_out(self) -> None:
        self.do(lambda: Session.objects.all().delete())

    def begin(self) -> None:
        self.do(self._empty)
        self.do(lambda: Pool.objects.create(name="llm", executor="llm"))
        self.do(lambda: make_bucket("openai", rate=50.0, burst=100.0))
        self._lookout = self.cookie("lookout")

    def end(self) -> None:
        self.do(self._empty)
        self.do(connections.close_all)
        self._thread.shutdown()

    @staticmethod
    def _empty() -> None:
        for model in (
            Snapshot,
            Task,
            TaskPayload,
            Attempt,
            Lease,
            Receipt,
            Checkpoint,
            Run,
            Occurrence,
            Schedule,
            Worker,
            Pool,
            Resource,
            BoundAccount,
            Tenant,
            Session,
            User,
        ):
            model.objects.all().delete()
        empty_audit()


@contextmanager
def engine(world: World) -> Iterator[None]:
    """Write a snapshot every half second, as an engine does every second, until the block ends."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            world.waiting(next(_numbers))
            stop.wait(0.5)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@contextmanager
def web_process(database_url: str) -> Iterator[str]:
    """A Daphne of its own on a free port of this machine; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": database_url,
            "CRONOQ_ORIGINS": url,
        }
        command = [sys.executable, "-m", "daphne", "--fd", str(listener.fileno()), "cronoq_app.asgi:application"]
        process = subprocess.Popen(command, env=environment, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.poll() is not None or answers(url), what="the web process")
            assert process.poll() is None, "the web process ended at once"
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


def answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/ops/sign-in/", timeout=10) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False
