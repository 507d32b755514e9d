"""The embedded PostgreSQL: shared, healed, stopped by its last user, and clear about why it cannot start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from scheduler.postgres import EmbeddedServer, PostgresError
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cluster for the module; making one takes longer than all the rest."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def server(data_dir: Path) -> Iterator[EmbeddedServer]:
    """A claim on a running server, and a stopped server afterwards whatever the test did to it."""
    server = EmbeddedServer(data_dir)
    server.attach()
    yield server
    server.release()
    assert not server.is_listening()


def postmaster_pid(server: EmbeddedServer) -> int:
    return int((server.pgdata / "postmaster.pid").read_text().split("\n", 1)[0])


def value(server: EmbeddedServer, query: str) -> object:
    with psycopg.connect(server.url()) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]


def test_it_answers_and_listens_on_no_network_port(server: EmbeddedServer) -> None:
    assert value(server, "SELECT current_database()") == "cronoq"
    assert value(server, "SELECT current_setting('listen_addresses')") == ""


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit", "data_checksums"])
def test_durability_keeps_its_defaults(server: EmbeddedServer, setting: str) -> None:
    assert value(server, f"SELECT current_setting('{setting}')") == "on"


def test_its_files_are_closed_to_others(server: EmbeddedServer) -> None:
    assert server.pgdata.stat().st_mode & 0o077 == 0


def test_the_last_user_stops_it(server: EmbeddedServer) -> None:
    with EmbeddedServer(server.data_dir):
        assert server.is_listening()
    assert server.is_listening()


def test_a_user_in_another_process_keeps_it_up(server: EmbeddedServer) -> None:
    program = (
        "import sys; from pathlib import Path; from scheduler.postgres import EmbeddedServer\n"
        "with EmbeddedServer(Path(sys.argv[1])): print('attached', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(server.data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"attached\n"
        server.release()
        assert server.is_listening()
        other.communicate()
    wait_until(lambda: not server.is_listening(), what="the other process to stop the server")


def test_a_killed_user_does_not_keep_it_up(server: EmbeddedServer) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from scheduler.postgres import EmbeddedServer\n"
        "EmbeddedServer(Path(sys.argv[1])).attach(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(server.data_dir)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert server.is_listening()
    server.release()
    assert not server.is_listening()


def test_a_killed_server_comes_back_with_everything_committed(server: EmbeddedServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    os.kill(postmaster_pid(server), signal.SIGKILL)
    wait_until(lambda: not server.is_listening(), what="the server to be gone")
    server.revive()
    assert value(server, "SELECT answer FROM kept") == 42


@pytest.mark.skipif(sys.platform != "linux", reason="process numbers are looked up in /proc")
def test_a_lock_file_whose_number_is_another_programs_is_not_in_the_way(server: EmbeddedServer) -> None:
    lock = server.pgdata / "postmaster.pid"
    held = lock.read_text().split("\n")
    server.stop(signal.SIGQUIT)
    # Written in place, so that the file keeps belonging to the server's account; this test's own number is in use.
    lock.write_text("\n".join([str(os.getpid()), *held[1:]]))
    os.chown(lock, server.pgdata.stat().st_uid, server.pgdata.stat().st_gid)
    server.revive()
    assert value(server, "SELECT 1") == 1


def test_reviving_a_running_server_leaves_it_alone(server: EmbeddedServer) -> None:
    before = postmaster_pid(server)
    server.revive()
    assert postmaster_pid(server) == before


def test_a_server_that_cannot_start_says_why(server: EmbeddedServer) -> None:
    settings = server.pgdata / "postgresql.auto.conf"
    original = settings.read_text()
    server.stop()
    settings.write_text(original + "max_connections = many\n")
    try:
        with pytest.raises(PostgresError, match=r"did not start(?s:.*)invalid value for parameter \"max_connections\""):
            server.revive()
    finally:
        settings.write_text(original)
    server.revive()


def test_a_data_directory_that_cannot_be_used_is_a_sentence() -> None:
    with pytest.raises(PostgresError, match=r"The data directory /dev/null/data cannot be used"):
        EmbeddedServer(Path("/dev/null/data")).attach()


@pytest.mark.slow
def test_an_interrupted_creation_and_a_long_path_do_not_matter(tmp_path: Path) -> None:
    data_dir = tmp_path / ("long" * 30)
    (data_dir / "postgres.new").mkdir(parents=True)
    (data_dir / "postgres.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedServer(data_dir) as server:
        assert value(server, "SELECT 1") == 1
        assert not server.socket_dir.is_relative_to(data_dir)
        assert server.socket_dir.stat().st_mode & 0o077 == 0
    assert not server.is_listening()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.usefixtures("server")  # starting it as root has made the programs reachable for others
def test_it_runs_for_an_ordinary_user_too(tmp_path: Path) -> None:
    """Root starts the server under an account of its own; here everything runs under one ordinary account."""
    program = (
        "import os, sys; from pathlib import Path; from scheduler.postgres import EmbeddedServer; import psycopg\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "with EmbeddedServer(Path(sys.argv[1])) as server: print(psycopg.connect(server.url()).info.user)"
    )
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    for folder in (tmp_path, *tmp_path.parents):
        folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(home / "data")], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "postgres\n"), done.stderr
