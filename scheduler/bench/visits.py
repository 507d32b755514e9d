"""A web process under measurement: what a visit, a socket and a second of standing by cost it and its database.

Wall-clock times say little on a machine that others use; processor time and counts do. Both are taken.
"""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from scheduler.bench.programs import running

READY_WITHIN_S: Final = 180.0
ANSWER_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a visit came to. `sent_bytes` are those of the body as it was sent."""

    status: int
    body: bytes
    wall_ms: float
    sent_bytes: int


class Site:
    """One web process, visited by one person over one connection."""

    def __init__(self, port: int, pid: int, cookie: str) -> None:
        self.port = port
        self.pid = pid
        self.cookie = cookie
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_WITHIN_S)

    def visit(self, path: str) -> Answer:
        """Load a page, once, as a browser asks for it."""
        headers = {"Cookie": self.cookie, "Accept-Encoding": "gzip, br"}
        began = time.perf_counter()
        try:
            self._line.request("GET", path, headers=headers)
            said = self._line.getresponse()
            sent = said.read()
        except (OSError, http.client.HTTPException):
            self._line.close()
            raise
        wall_ms = 1000 * (time.perf_counter() - began)
        packed = said.getheader("Content-Encoding") == "gzip"
        return Answer(said.status, gzip.decompress(sent) if packed else sent, wall_ms, len(sent))

    def rss_mb(self) -> float:
        """Memory that the web process holds now."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024


@contextmanager
def web_process(cookie: str) -> Iterator[Site]:
    """A web process of its own on this database, until the block ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        listener.set_inheritable(True)
        port, number = listener.getsockname()[1], listener.fileno()
        environment = os.environ | {"CRONOQ_ORIGINS": f"http://127.0.0.1:{port}"}
        command = [
            sys.executable,
            "-m",
            "daphne",
            "--websocket_connect_timeout",
            "30",
            "--fd",
            str(number),
            "cronoq_app.asgi:application",
        ]
        with running(command, environment, pass_fds=(number,)) as pid:
            site = Site(port, pid, cookie)
            _wait_until_it_answers(site)
            yield site


def _wait_until_it_answers(site: Site) -> None:
    give_up_at = time.monotonic() + READY_WITHIN_S
    while True:
        with suppress(OSError, http.client.HTTPException):
            if site.visit("/ops/").status == http.client.OK:
                return
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"the web process did not answer within {READY_WITHIN_S:g} s")
        time.sleep(0.2)


def sign_in() -> str:
    """The cookie of somebody who may do everything."""
    user, _ = User.objects.get_or_create(username="bench", defaults={"is_superuser": True, "is_staff": True})
    client = Client()
    client.force_login(user)
    name = str(settings.SESSION_COOKIE_NAME)
    return f"{name}={client.cookies[name].value}"


@contextmanager
def engine_process() -> Iterator[int]:
    """An engine on this database, until the block ends; its process id."""
    with running([sys.executable, "manage.py", "engine"], dict(os.environ)) as pid:
        yield pid
