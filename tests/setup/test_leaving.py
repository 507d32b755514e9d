"""A web process that is told to stop ends, whatever its requests still wait for."""

from __future__ import annotations

import sys
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

import psycopg
from django.conf import settings

from tests.conftest import LiveDatabase
from tests.support.processes import ROOT, environment, free_port, running, status_of
from tests.support.waiting import wait_until

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def test_pages_that_wait_for_the_database_do_not_keep_it(live_database: LiveDatabase, tmp_path: Path) -> None:
    port = free_port()
    environ = environment(
        DATABASE_URL=live_database.url,
        CRONOQ_SECRET_KEY="only-for-tests-" * 4,
        CRONOQ_ALLOWED_HOSTS="127.0.0.1",
        CRONOQ_ORIGINS=f"http://127.0.0.1:{port}",
        CRONOQ_SHUTDOWN_GRACE_S="0.5",
        DJANGO_SETTINGS_MODULE="tests.settings",
    )
    cookie = f"{settings.SESSION_COOKIE_NAME}={'a' * 32}"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/ops/", headers={"Cookie": cookie})

    def ask() -> None:
        with suppress(OSError):
            urllib.request.urlopen(request, timeout=60).close()

    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "cronoq_app.asgi:application"]
    with running(command, tmp_path / "web", environ=environ, cwd=ROOT) as web:
        wait_until(lambda: status_of(f"http://127.0.0.1:{port}/healthz") is not None)
        with psycopg.connect(live_database.url, autocommit=True) as watch, psycopg.connect(live_database.url) as holder:
            holder.execute("LOCK TABLE django_session IN ACCESS EXCLUSIVE MODE")
            asking = [threading.Thread(target=ask) for _ in range(2)]
            for each in asking:
                each.start()
            wait_until(lambda: watch.execute(WAITS).fetchone() != (0,), what="a page to wait for the database")
            web.process.terminate()
            assert web.wait(20) == 0, web.text()
        for each in asking:
            each.join()
