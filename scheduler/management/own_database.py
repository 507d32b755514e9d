"""Runs this very command once more, in a database of its own that is dropped at the end.

For commands that measure: they must never touch the work of the installation they are started in.
"""

import os
import secrets
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from scheduler import conf
from scheduler.postgres import database_url, embedded_database

INSIDE = "CRONOQ_OWN_DATABASE"


def is_inside() -> bool:
    """Whether this process is the one that works in a database of its own."""
    return INSIDE in os.environ


def run_in_own_database() -> int:
    """Run the same command line against a new database; returns its exit status."""
    with embedded_database():
        config = conf.current()
        url = database_url(config)
        name = f"cronoq_own_{secrets.token_hex(4)}"
        environment = os.environ | {
            INSIDE: name,
            "DATABASE_URL": urlunsplit(urlsplit(url)._replace(path=f"/{name}")),
            "CRONOQ_SECRET_KEY": secrets.token_urlsafe(50),
            "CRONOQ_ALLOWED_HOSTS": "127.0.0.1",
            "CRONOQ_ORIGINS": "http://127.0.0.1",
        }
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            try:
                # This very command with this very interpreter; nothing of it comes from outside.
                return subprocess.run([sys.executable, *sys.argv], check=False, env=environment).returncode  # noqa: S603 - see above
            finally:
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
