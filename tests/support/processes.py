"""Programs tests start as users do: real processes, watched, and gone when the test is over."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
# Carried in the environment of everything a test starts, so that what it left behind can be found.
MARK = "CRONOQ_TEST_RUN"


def free_port(count: int = 1) -> int:
    """Return the first of ``count`` neighbouring ports that are free now."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port + count <= 65_535 and all(_is_free(port + step) for step in range(count)):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def environment(**changes: str | None) -> dict[str, str]:
    """Return this process's environment without our own variables, our programs first in PATH, changed as told."""
    ours = ("CRONOQ_", "DATABASE_URL", "DEMO", "DJANGO_", "PORT", "PYTEST", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    kept |= {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "default"}
    return kept | {name: value for name, value in changes.items() if value is not None}


@dataclass(slots=True)
class Running:
    """One started program. Its output, both streams, is in ``output`` from ``begins`` on; others wrote before it."""

    process: subprocess.Popen[bytes]
    output: Path
    mark: str
    begins: int = 0

    def text(self) -> str:
        """Return what it has said so far."""
        return self.output.read_bytes()[self.begins :].decode(errors="replace")

    def wait(self, timeout_s: float = 120.0) -> int:
        """Return its exit status."""
        return self.process.wait(timeout_s)

    def interrupt(self) -> None:
        """Press Ctrl-C: the whole foreground group receives the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill the one process, not its children."""
        self.process.kill()
        self.process.wait(10)

    def left_behind(self) -> list[str]:
        """Return the command lines of what it started, directly or not, and what still runs."""
        return [line for pid, line in _marked(self.mark) if pid != self.process.pid]

    def wait_until_alone(self) -> None:
        """Wait until nothing that it started runs any more."""
        wait_until(lambda: not self.left_behind(), what=f"the end of {self.left_behind()}")


@contextmanager
def running(command: Sequence[str], output: Path, *, environ: Mapping[str, str], cwd: Path = ROOT) -> Iterator[Running]:
    """Start a program in a session of its own; it and everything it started is killed at the end."""
    mark = uuid.uuid4().hex
    with output.open("ab") as sink:
        begins = sink.tell()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**environ, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    program = Running(process, output, mark, begins)
    try:
        yield program
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        for pid, _ in _marked(mark):
            _kill(pid)


@dataclass(slots=True)
class Product:
    """An installation with the embedded database, as ``make run`` makes it, on a port of its own."""

    data_dir: Path
    port: int = field(default_factory=lambda: free_port(2))
    demo: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Return where it is served, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment its commands get."""
        return environment(
            CRONOQ_DATA_DIR=str(self.data_dir), PORT=str(self.port), DEMO=str(int(self.demo)), **self.variables
        )

    def credentials(self) -> dict[str, str]:
        """Return what ``prepare`` wrote for newcomers."""
        read: dict[str, str] = json.loads((self.data_dir / "credentials.json").read_text(encoding="utf-8"))
        return read

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run one management command to its end."""
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environ,
            check=False,
            capture_output=True,
            text=True,
            timeout=280,
        )

    @contextmanager
    def serving(self, *options: str) -> Iterator[Running]:
        """Run ``manage.py serve`` and wait until it answers."""
        command = [sys.executable, "manage.py", "serve", *options]
        with running(command, self.data_dir / "serve.out", environ=self.environ) as program:
            self.wait_until_up(program)
            yield program

    def wait_until_up(self, program: Running) -> None:
        """Wait until the web answers; a program that ends instead fails the test with what it said."""

        def is_up() -> bool:
            assert program.process.poll() is None, program.text()
            return status_of(f"{self.url}/healthz") is not None

        wait_until(is_up, what=f"{self.url} to answer")

    def call(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
        """Make one API call; returns the status and the decoded answer."""
        return call(method, f"{self.url}{path}", body, token=token)

    def postgres_pid(self) -> int:
        """Return the process number of its database server."""
        return int((self.data_dir / "postgres" / "postmaster.pid").read_text(encoding="ascii").split("\n", 1)[0])


def call(method: str, url: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
    """Make one call with JSON; returns the status and the decoded answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=70) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def status_of(url: str) -> int | None:
    """Return the status of a GET, or None when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


def _marked(mark: str) -> list[tuple[int, str]]:
    """Return number and command line of every process that carries a mark. Linux only: elsewhere none is found."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append((int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
