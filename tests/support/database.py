"""The databases tests run on: one per test process, copied from a migrated template that is kept between runs."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg import sql

from scheduler import conf
from scheduler.postgres import EmbeddedServer, database_url
from scheduler.store.submit import forget_demands

TEMPLATE_PREFIX = "cronoq_template_"
TEST_PREFIX = "cronoq_test_"
# Any number all test processes agree on: serialises making and copying the template.
TEMPLATE_LOCK = 0x63726F6E
# Filled by Django after migrations, needed by every test that makes users or permissions.
KEPT_TABLES = ("auth_permission", "django_content_type", "django_migrations")


def url_of(name: str) -> str:
    """Return the URL of another database on the server that tests use."""
    url = database_url(conf.current())
    head, _, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")


@contextmanager
def test_database(worker: str) -> Iterator[str]:
    """Bring the server up and point Django at a fresh, migrated database; yields its name and drops it afterwards."""
    config = conf.current()
    server = EmbeddedServer(config.data_dir) if config.embedded else None
    if server is not None:
        server.attach()
    try:
        name = f"{TEST_PREFIX}{os.getpid()}_{worker}"
        with _admin() as admin:
            admin.execute("SELECT pg_advisory_lock(%s)", (TEMPLATE_LOCK,))
            if server is not None:
                _drop_leftovers(admin)
            template = _ready_template(admin)
            _drop(admin, name)
            _create(admin, name, template)
        use_database(name)
        try:
            yield name
        finally:
            close_connections()
            with _admin() as admin:
                _drop(admin, name)
    finally:
        if server is not None:
            server.release()


@contextmanager
def empty_database() -> Iterator[str]:
    """Create a database without any table on the server in use; yields its URL and drops it afterwards."""
    name = f"{TEST_PREFIX}{os.getpid()}_empty"
    with _admin() as admin:
        _drop(admin, name)
        _create(admin, name, "template0")
    try:
        yield url_of(name)
    finally:
        with _admin() as admin:
            _drop(admin, name)


def use_database(name: str) -> None:
    """Make Django's default connection of every thread use another database of the same server."""
    close_connections()
    settings.DATABASES["default"]["NAME"] = name
    connection.settings_dict["NAME"] = name


def close_connections() -> None:
    """Close this thread's connections and the pool behind them."""
    connections.close_all()
    # The default connection is PostgreSQL's, whose pool the general type does not know.
    cast("DatabaseWrapper", connection).close_pool()


def empty_tables(name: str) -> None:
    """Delete every row a test committed, after ending the sessions it left open."""
    close_connections()
    forget_demands()
    with psycopg.connect(url_of(name), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        tables = admin.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL (%s)",
            (list(KEPT_TABLES),),
        ).fetchall()
        each = sql.SQL(" UNION ALL ").join(
            sql.SQL("(SELECT {} WHERE EXISTS (SELECT 1 FROM {}))").format(sql.Literal(table), sql.Identifier(table))
            for (table,) in tables
        )
        filled = [table for (table,) in admin.execute(each).fetchall()]
        if filled:
            names = sql.SQL(", ").join(map(sql.Identifier, filled))
            admin.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(names))


def _admin() -> psycopg.Connection:
    """Connect to the server's maintenance database."""
    return psycopg.connect(url_of("postgres"), autocommit=True)


def _ready_template(admin: psycopg.Connection) -> str:
    """Return the name of a database with today's migrations, making it if this is the first run with them."""
    name = TEMPLATE_PREFIX + _migrations_digest()
    existing = {row[0] for row in admin.execute("SELECT datname FROM pg_database").fetchall()}
    if name in existing:
        return name
    for stale in existing:
        if stale.startswith(TEMPLATE_PREFIX):
            _drop(admin, stale)
    draft = f"{TEMPLATE_PREFIX}draft"
    _create(admin, draft, "template0")
    use_database(draft)
    call_command("migrate", verbosity=0, interactive=False)
    close_connections()
    # Renamed last, so that an interrupted migration never passes for a template.
    admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(draft), sql.Identifier(name)))
    return name


def _migrations_digest() -> str:
    """Return a name for what migrations would make now."""
    digest = hashlib.sha256(repr((django.get_version(), settings.INSTALLED_APPS)).encode())
    folder = Path(settings.BASE_DIR) / "scheduler" / "migrations"
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".py", ".sql"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _drop_leftovers(admin: psycopg.Connection) -> None:
    """Drop the databases of test processes that were killed. Only on the embedded server, where all pids are ours."""
    for (name,) in admin.execute("SELECT datname FROM pg_database").fetchall():
        if name.startswith(TEST_PREFIX):
            try:
                os.kill(int(name.removeprefix(TEST_PREFIX).split("_", 1)[0]), 0)
            except ProcessLookupError:
                _drop(admin, name)
            except PermissionError:
                continue


def _create(admin: psycopg.Connection, name: str, template: str) -> None:
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8'")
    admin.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))


def _drop(admin: psycopg.Connection, name: str) -> None:
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
