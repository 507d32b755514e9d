"""Counts every statement that is sent to the database, by whichever way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that are sent until the block ends, but for those that come with time: the newest snapshot."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if "snapshot" not in str(query):
            sent.append(str(query))
        return execute(self, query, *args, **kwargs)

    with patch.object(psycopg.Cursor, "execute", counted):
        yield sent
