"""The web server as its users start it: Daphne in a process of its own, on a database that tests share with it."""

import os
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent


@contextmanager
def running_server(database_url: str, *, before: str = "pass") -> Iterator[str]:
    """Start a web process on this database, yield its base URL, stop it. `before` is Python that it runs first."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    env = {
        **os.environ,
        "DATABASE_URL": database_url,
        "CRONOQ_SECRET_KEY": "only-for-tests-" * 4,
        "CRONOQ_ALLOWED_HOSTS": "127.0.0.1",
        "CRONOQ_ORIGINS": url,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    program = f"{before}; from daphne.cli import CommandLineInterface; CommandLineInterface.entrypoint()"
    command = [sys.executable, "-c", program, "-b", "127.0.0.1", "-p", str(port), "cronoq_app.asgi:application"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: _answers(url, process), what="the web server to answer")
            yield url
        finally:
            # It keeps nothing that a kill could lose, and a clean stop waits for idle clients.
            process.kill()
            process.wait()
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))


def _answers(url: str, process: "subprocess.Popen[bytes]") -> bool:
    if process.poll() is not None:
        raise AssertionError(f"the web server ended with status {process.returncode}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
