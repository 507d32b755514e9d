"""Makes PostgreSQL end a real deadlock by undoing the next transaction that writes into a table, once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.support.waiting import wait_until

# Whoever writes takes the first lock, lets the rival, who has the second, wait for it, and then wants the second.
MEET = """
CREATE SEQUENCE met;
CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('met') = 1 THEN
        PERFORM set_config('deadlock_timeout', '20ms', true), pg_advisory_xact_lock(4242, 1);
        FOR look IN 1..2000 LOOP
            EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE classid = 4242 AND objid = 1 AND NOT granted
                              AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));
            PERFORM pg_sleep(0.01);
        END LOOP;
        PERFORM pg_advisory_xact_lock(4242, 2);
    END IF;
    RETURN NULL;
END $$
"""
REFUSE = """
CREATE SEQUENCE met;
CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('met') <= {times} THEN
        RAISE EXCEPTION 'undone by the test' USING ERRCODE = {state};
    END IF;
    RETURN NULL;
END $$
"""
TRIGGER = "CREATE TRIGGER meet AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION meet()"
HELD = """
SELECT EXISTS (SELECT FROM pg_locks WHERE classid = 4242 AND objid = 1 AND granted
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


@contextmanager
def deadlock_in(url: str, table: str) -> Iterator[Callable[[], int]]:
    """Let the next transaction that inserts into `table` meet a rival that takes two locks in the opposite order.

    Yields how many transactions came to that insertion, those that were undone too.
    """
    with _trigger(url, table, sql.SQL(MEET)) as came, psycopg.connect(url) as rival:
        rival.execute("SET deadlock_timeout = '60s'")
        rival.execute("SELECT pg_advisory_xact_lock(4242, 2)")
        ended = threading.Event()
        thread = threading.Thread(target=_want_the_first, args=(url, rival, ended))
        thread.start()
        try:
            yield came
        finally:
            ended.set()
            thread.join()


@contextmanager
def undone_in(url: str, table: str, state: str, *, times: int) -> Iterator[Callable[[], int]]:
    """Let so many transactions that insert into `table` fail with an SQLSTATE; yields as `deadlock_in` does."""
    body = sql.SQL(REFUSE).format(times=sql.Literal(times), state=sql.Literal(state))
    with _trigger(url, table, body) as came:
        yield came


@contextmanager
def _trigger(url: str, table: str, function: sql.SQL | sql.Composed) -> Iterator[Callable[[], int]]:
    with psycopg.connect(url, autocommit=True) as admin:

        def came() -> int:
            row = admin.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM met").fetchone()
            return int(row[0]) if row else 0

        admin.execute(function)
        try:
            admin.execute(sql.SQL(TRIGGER).format(table=sql.Identifier(table)))
            yield came
        finally:
            admin.execute("DROP FUNCTION IF EXISTS meet() CASCADE")
            admin.execute("DROP SEQUENCE IF EXISTS met")


def _want_the_first(url: str, rival: psycopg.Connection, ended: threading.Event) -> None:
    """Once somebody has the first lock, wait for it; then let both go."""
    with psycopg.connect(url, autocommit=True) as watch:

        def is_held() -> bool:
            row = watch.execute(HELD).fetchone()
            return ended.is_set() or bool(row and row[0])

        wait_until(is_held, what="whoever takes the first lock")
    if not ended.is_set():
        rival.execute("SELECT pg_advisory_xact_lock(4242, 1)")
    rival.rollback()
