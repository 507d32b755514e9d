"""Where an embedded scheduler keeps its work: finds or starts the database, and has its tables up to date.

Decides which database a process uses, once: Django has one per process, so a second scheduler shares the first one's.
A Django project that has the product installed is used as it stands. It must never touch the settings of a project
that is there, and never leave the server of a data directory running that nobody uses.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import django
import psycopg
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.executor import MigrationExecutor

from scheduler import conf
from scheduler.postgres import EmbeddedServer, PostgresError, database_url
from scheduler.sdk.errors import SchedulerError

APPS: Final = ("django.contrib.auth", "django.contrib.contenttypes", "scheduler")
TAKEN_OVER: Final = ("DATABASES", "DEFAULT_AUTO_FIELD", "SECRET_KEY", "TIME_ZONE", "USE_I18N", "USE_TZ")
MIGRATION_LOCK: Final = 0x63726F71
"""Any number that all processes agree on: one of them migrates, the others wait."""

Database = str | os.PathLike[str] | None


class Home:
    """The database of this process, and how many schedulers here use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chosen: str | None = None
        self._is_project = False
        self._users = 0
        self._server: EmbeddedServer | None = None

    def enter(self, database: Database) -> None:
        """Have the database up and migrated. Called in a thread; raises SchedulerError with what to do."""
        with self._lock:
            try:
                self._configure(database)
                if self._users == 0:
                    self._server = _own_server()
                    if self._server is not None:
                        self._server.attach()
                self._users += 1
            except (conf.ConfigurationError, PostgresError) as error:
                raise SchedulerError(str(error)) from error
        try:
            _migrate()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Give the database up; the last one out stops the server of a data directory. Called in a thread."""
        with self._lock:
            self._users -= 1
            server = self._server
            if self._users == 0 and server is not None:
                self._server = None
                server.release()

    def heal(self) -> None:
        """Start the server again if it died under us. Called in a thread."""
        server = self._server
        if server is not None and not server.is_listening():
            server.revive()

    def _configure(self, database: Database) -> None:
        wanted = None if database is None else os.fspath(database)
        if self._chosen is None:
            self._is_project = settings.configured or bool(os.environ.get("DJANGO_SETTINGS_MODULE"))
        if self._is_project:
            _use_project(wanted)
        elif self._chosen is None:
            _use_own_settings(wanted)
            self._chosen = wanted or ""
        elif wanted is not None and wanted != self._chosen:
            detail = "This process has a scheduler on another database already; use one process for each database."
            raise SchedulerError(detail)


def _use_project(wanted: str | None) -> None:
    """A Django project is there: its database is ours."""
    if not apps.ready:
        django.setup()
    if not apps.is_installed("scheduler"):
        raise SchedulerError("Django is set up without this product; add 'scheduler' to its INSTALLED_APPS.")
    if wanted is not None:
        raise SchedulerError("Django is set up here, and its settings say which database to use; leave database= out.")


def _use_own_settings(wanted: str | None) -> None:
    """Nobody has set Django up: do it with the product's own settings, as far as they concern the database."""
    conf.use(conf.load(_environment(wanted)))
    # Reads the configuration when it is imported, which must not be before it is chosen.
    from cronoq_app import settings as ours  # noqa: PLC0415 - see above

    chosen: dict[str, Any] = {name: getattr(ours, name) for name in TAKEN_OVER}
    # Logging is the caller's business.
    settings.configure(INSTALLED_APPS=list(APPS), LOGGING_CONFIG=None, **chosen)
    django.setup()


def _environment(wanted: str | None) -> dict[str, str]:
    """The environment with the database asked for. What only a web process needs is made up: there is none here."""
    environ = dict(os.environ)
    if wanted is not None and "://" in wanted:
        environ["DATABASE_URL"] = wanted
    elif wanted is not None:
        environ.pop("DATABASE_URL", None)
        environ["CRONOQ_DATA_DIR"] = str(Path(wanted))
    if environ.get("DATABASE_URL"):
        environ.pop("CRONOQ_SECRET_KEY_FILE", None)
        environ |= {
            "CRONOQ_SECRET_KEY": secrets.token_urlsafe(48),
            "CRONOQ_ALLOWED_HOSTS": "localhost",
            "CRONOQ_ORIGINS": "http://localhost",
        }
    return environ


def _own_server() -> EmbeddedServer | None:
    """The server in the data directory, if that is what Django connects to."""
    config = conf.current()
    if not config.embedded:
        return None
    server = EmbeddedServer(config.data_dir)
    return server if settings.DATABASES[DEFAULT_DB_ALIAS].get("HOST") == str(server.socket_dir) else None


def _migrate() -> None:
    """Bring the tables up to date, one process at a time."""
    try:
        if not _unapplied():
            return
        with _alone():
            if _unapplied():
                call_command("migrate", interactive=False, verbosity=0)
    finally:
        connections.close_all()


def _unapplied() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of migrations on a connection of its own, so that a migration's own transaction is none of its."""
    url = conf.current().direct_database_url or database_url(conf.current())
    with psycopg.connect(url, autocommit=True) as lock:
        lock.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))
        yield


HOME: Final = Home()
"""This process's one home."""
