"""A database to share with the processes under test, and one on a server of its own that a test may crash."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from scheduler.postgres import EmbeddedServer, parse_url
from scheduler.store.submit import forget_demands
from tests.acceptance.site import Site
from tests.conftest import LiveDatabase
from tests.support.database import close_connections


@pytest.fixture
def site(live_database: LiveDatabase, tmp_path: Path) -> Site:
    """Processes on this test's database."""
    return Site(live_database.url, tmp_path)


@pytest.fixture
def own_server(
    django_db_setup: str,  # it points Django to its own database first
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[EmbeddedServer]:
    """A server with a migrated database of which Django in this process is a client too."""
    # Not under pytest's own directory: that is closed to others each time a session starts, and the server of a root
    # user runs as somebody else.
    with (
        tempfile.TemporaryDirectory(prefix="cronoq-acceptance-") as folder,
        EmbeddedServer(Path(folder)) as server,
        django_db_blocker.unblock(),
    ):
        fields = parse_url(server.url())
        changes = {"NAME": fields["dbname"], "HOST": fields["host"], "USER": fields["user"], "PASSWORD": "", "PORT": ""}
        before = {name: connection.settings_dict[name] for name in changes}
        _point_to(changes)
        try:
            call_command("migrate", verbosity=0, interactive=False)
            yield server
        finally:
            _point_to(before)


def _point_to(changes: dict[str, str]) -> None:
    close_connections()
    forget_demands()
    settings.DATABASES["default"].update(changes)
    connection.settings_dict.update(changes)
