"""The serving process: comes up, ends cleanly, and heals what a killed one left."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Product, call, running, status_of
from tests.support.waiting import wait_until

# One test process for all: preparing the installation takes as long as several of the tests.
pytestmark = [pytest.mark.acceptance, pytest.mark.xdist_group("serve")]

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture(scope="module")
def installation() -> Iterator[Product]:
    """One prepared installation for the module.

    Not under pytest's own directory: each session that starts closes it to others, and the server of a root user runs
    as somebody else.
    """
    with tempfile.TemporaryDirectory(prefix="cronoq-serve-") as folder:
        product = Product(Path(folder) / "data")
        prepared = product.manage("prepare")
        assert prepared.returncode == 0, prepared.stdout + prepared.stderr
        yield product


@pytest.fixture
def product(installation: Product) -> Iterator[Product]:
    """The installation, with its database down before and after."""
    yield installation
    lock = installation.data_dir / "postgres" / "postmaster.pid"
    assert not lock.exists()


def test_preparing_again_changes_nothing(product: Product) -> None:
    before = product.credentials()
    assert product.manage("prepare").returncode == 0
    assert product.credentials() == before


def test_credentials_are_complete_and_closed_to_others(product: Product) -> None:
    path = product.data_dir / "credentials.json"
    assert path.stat().st_mode & 0o777 == 0o600
    credentials = product.credentials()
    assert set(credentials) == {"url", "token", "admin_token", "username", "password", "provider_url"}
    assert credentials["url"] == f"{product.url}/"
    assert all(credentials.values())


@linux_only
def test_a_taken_port_is_a_sentence_and_ctrl_c_stops_everything(product: Product) -> None:
    with product.serving() as serve:
        second = product.manage("serve")
        assert second.returncode == 1
        assert f"Cannot listen on 127.0.0.1:{product.port} (Address already in use). Set PORT" in second.stderr
        assert serve.left_behind() != []
        serve.interrupt()
        assert serve.wait() == 0, serve.text()
        assert serve.left_behind() == []


@linux_only
def test_a_second_ctrl_c_does_not_wait_for_running_work(product: Product) -> None:
    credentials = product.credentials()
    with product.serving() as serve:
        provider = credentials["provider_url"].removesuffix("/v1")
        wait_until(lambda: status_of(f"{provider}/healthz") == 200, what="the provider simulator")
        assert call("POST", f"{provider}/faults", [{"kind": "hang"}])[0] == 200
        payload = {"messages": [{"role": "user", "content": "hello"}]}
        status, task = product.call(
            "POST", "/api/v1/tasks", {"pool": "llm", "payload": payload}, token=credentials["token"]
        )
        assert status == 202, task
        wait_until(lambda: call("GET", f"{provider}/stats")[1]["in_flight"] == 1, what="the task to be at the provider")
        serve.interrupt()
        wait_until(lambda: "Once more to stop at once" in serve.text(), what="the first Ctrl-C to be heard")
        serve.interrupt()
        assert serve.wait(10) == 130, serve.text()
        assert serve.left_behind() == []


@linux_only
def test_a_killed_database_is_started_again_and_a_terminated_process_stops_everything(product: Product) -> None:
    with product.serving() as serve:
        killed = product.postgres_pid()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: status_of(f"{product.url}/readyz") == 200 and product.postgres_pid() != killed)
        serve.process.terminate()
        assert serve.wait() == 0, serve.text()
        assert serve.left_behind() == []


@linux_only
def test_the_next_run_heals_what_a_killed_machine_left_and_a_killed_process_too(product: Product) -> None:
    with product.serving() as first:
        os.kill(product.postgres_pid(), signal.SIGKILL)
        first.kill()
        first.wait_until_alone()
        with product.serving() as second:
            assert status_of(f"{product.url}/readyz") == 200
            second.kill()
            # It takes its children with it; its database is there for the next.
            wait_until(lambda: all("postgres" in line for line in second.left_behind()), what="the children to end")
            with product.serving() as third:
                assert status_of(f"{product.url}/healthz") == 200
                third.interrupt()
                assert third.wait() == 0, third.text()
            second.wait_until_alone()


@linux_only
def test_it_ends_with_the_process_that_started_it_when_asked_to(product: Product, tmp_path: Path) -> None:
    starter = "import subprocess, sys; subprocess.run([sys.executable, 'manage.py', 'serve', '--with-parent'])"
    with running([sys.executable, "-c", starter], tmp_path / "out", environ=product.environ) as parent:
        product.wait_until_up(parent)
        parent.kill()
        parent.wait_until_alone()


def test_a_refused_configuration_is_a_sentence(tmp_path: Path) -> None:
    refused = Product(tmp_path, variables={"CRONOQ_POLL_INTERVAL_S": "never"}).manage("migrate")
    assert refused.returncode == 1
    assert refused.stderr == "migrate: CRONOQ_POLL_INTERVAL_S must be a number, not 'never'.\n"
