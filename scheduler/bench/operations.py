"""A replay of very many dead letters through the console: exactly those that were shown, aborted and resumed.

Web server and engine are processes of their own; the forms are filled in and sent as a browser without scripts does it.
"""

from __future__ import annotations

import html
import http.client
import re
import time
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import urlencode, urlsplit

from asgiref.sync import sync_to_async
from django.core.management import call_command

from scheduler.bench.filling import SIZES, fill_database
from scheduler.bench.visits import Site, engine_process, sign_in, web_process
from scheduler.bench.world import Reading, progress
from scheduler.models import Operation, OperationItem, Task
from scheduler.services.snapshot import take_snapshot
from scheduler.store import bench as store

FILTER: Final = "state:dead"
LATER: Final = 100
"""So many tasks die after the set was frozen, and must stay dead."""
GIVE_UP_S: Final = 600.0
_FIELD: Final = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class _Person:
    """Somebody at the console."""

    def __init__(self, site: Site) -> None:
        self._port = site.port
        self._cookies = site.cookie

    def form(self, path: str) -> dict[str, str]:
        """The hidden fields of a page."""
        _, page = self._ask("GET", path, 200)
        return {name: html.unescape(value) for name, value in _FIELD.findall(page)}

    def send(self, path: str, fields: Mapping[str, str]) -> str:
        """Send a form; where the answer leads."""
        return self._ask("POST", path, 303, urlencode(fields))[0]

    def _ask(self, method: str, path: str, status: int, body: str | None = None) -> tuple[str, str]:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Cookie": self._cookies, "Origin": f"http://127.0.0.1:{self._port}"}
        line.request(method, path, body, headers | {"Content-Type": "application/x-www-form-urlencoded"})
        said = line.getresponse()
        assert said.status == status, f"{path} was answered with {said.status}"  # noqa: S101 - the scenario's own world
        for cookie in SimpleCookie(said.getheader("Set-Cookie") or "").values():
            self._cookies += f"; {cookie.key}={cookie.value}"
        return said.getheader("Location") or "", said.read().decode()


async def operations(*, dead: int = 100_000, rate: int = 2_000) -> list[Reading]:
    """Tasks replayed per second at a set rate, and that it was the frozen set: each once, and nothing else."""
    return await sync_to_async(_measure)(dead, rate)


def _measure(dead: int, rate: int) -> list[Reading]:
    sizes = dict.fromkeys(SIZES, 0) | {"dead": dead, "tenants": 20, "groups": 50, "pools": 4}
    call_command("collectstatic", interactive=False, verbosity=0)
    fill_database(sizes)
    take_snapshot(None, {}, interval_s=1.0)
    frozen = _dead()
    with web_process(sign_in()) as site, engine_process():
        person = _Person(site)
        form = person.form(f"/ops/operations/new/?{urlencode({'kind': 'replay', 'filter': FILTER})}")
        fields = {"rate": str(rate), "reason": "the provider is back", "typed": str(dead)}
        path = urlsplit(person.send("/ops/operations/start/", form | fields)).path
        operation = int(path.rstrip("/").rsplit("/", 1)[1])
        store.add_crowd_tasks(sizes | {"dead": dead + LATER}, first=dead + 1, last=dead + LATER)
        later = _dead() - frozen
        _wait(operation, dead // 3)
        person.send(f"{path}abort/", person.form(path) | {"reason": "too fast"})
        at_abort = _row(operation).applied
        person.send(f"{path}resume/", person.form(path) | {"reason": "it copes"})
        began = time.perf_counter()
        _wait(operation, dead)
        took_s = time.perf_counter() - began
    applied = set(
        OperationItem.objects.filter(operation_id=operation, outcome="applied").values_list("task_id", flat=True)
    )
    settings = {"dead": dead, "rate": rate}
    return [
        Reading("operations", (dead - at_abort) / took_s, "tasks/s", settings),
        Reading("operations_done_at_abort", at_abort, "tasks", settings),
        Reading("operations_missing", len(frozen - applied), "tasks", settings),
        Reading("operations_beyond", len(applied - frozen) + len(later - _dead()), "tasks", settings),
        Reading("operations_twice", Task.objects.filter(replays__gt=1).count(), "tasks", settings),
    ]


def _dead() -> set[int]:
    return set(Task.objects.filter(state="dead_lettered").values_list("id", flat=True))


def _row(operation: int) -> Operation:
    return Operation.objects.get(pk=operation)


def _wait(operation: int, applied: int) -> None:
    """Wait until so many are done. Raises TimeoutError."""
    give_up_at = time.monotonic() + GIVE_UP_S
    while (row := _row(operation)).applied < applied:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"the operation is {row.state} with {row.applied} of {row.total} done")
        progress("operations", row.applied, row.total)
        time.sleep(0.05)
