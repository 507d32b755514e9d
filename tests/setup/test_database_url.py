"""What DATABASE_URL may be."""

import pytest

from scheduler.conf import ConfigurationError
from scheduler.postgres import parse_url


def test_a_url_is_read_as_libpq_reads_it() -> None:
    assert parse_url("postgresql://ann:p%40ss@db.example:6432/cronoq?sslmode=verify-full") == {
        "user": "ann",
        "password": "p@ss",
        "host": "db.example",
        "port": "6432",
        "dbname": "cronoq",
        "sslmode": "verify-full",
    }


def test_a_socket_directory_is_a_host() -> None:
    assert parse_url("postgres://postgres@/cronoq?host=/run/pg") == {
        "user": "postgres",
        "dbname": "cronoq",
        "host": "/run/pg",
    }


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://x/y", "must start with postgresql://"),
        ("dbname=cronoq", "must start with postgresql://"),
        ("postgresql://ann@db.example", "must name a database"),
        ("postgresql://ann@db.example/cronoq?sslmodus=require", "cannot be read"),
        ("postgresql://ann:secret@[::1/cronoq", "cannot be read"),
    ],
)
def test_anything_else_is_refused_with_a_sentence_that_repeats_no_password(url: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as refusal:
        parse_url(url)
    assert "secret" not in str(refusal.value)
