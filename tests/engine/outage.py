"""A database that cannot be reached for a while, as seen by everything that uses this test's database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.support.database import close_connections, url_of


def cut_connections(database: str) -> None:
    """End every session of the database, as a restart of the server does."""
    close_connections()
    with psycopg.connect(url_of("postgres"), autocommit=True) as admin:
        _cut(admin, database)


@contextmanager
def outage(database: str) -> Iterator[None]:
    """Cut every connection and refuse new ones until the end of the block."""
    close_connections()
    with psycopg.connect(url_of("postgres"), autocommit=True) as admin:
        allow = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
        admin.execute(allow.format(sql.Identifier(database), sql.SQL("false")))
        try:
            _cut(admin, database)
            yield
        finally:
            admin.execute(allow.format(sql.Identifier(database), sql.SQL("true")))


def _cut(admin: psycopg.Connection, database: str) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'",
        (database,),
    )
