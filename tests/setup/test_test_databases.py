"""The databases tests run on."""

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.conftest import LiveDatabase


@pytest.mark.django_db
@pytest.mark.parametrize("_turn", [1, 2])
def test_a_rolled_back_test_leaves_nothing(_turn: int) -> None:
    assert not User.objects.exists()
    User.objects.create_user("ada")


@pytest.mark.parametrize("_turn", [1, 2])
def test_committed_rows_are_seen_elsewhere_and_gone_afterwards(live_database: LiveDatabase, _turn: int) -> None:
    assert not User.objects.exists()
    User.objects.create_user("ada")
    with psycopg.connect(live_database.url) as other:
        assert other.execute("SELECT username FROM auth_user").fetchall() == [("ada",)]


@pytest.mark.django_db
def test_durability_is_not_weakened() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
        assert cursor.fetchone() == ("on", "on")
