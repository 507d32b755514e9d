"""Counts tries of signing in by key, by the database's clock."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("sign_ins.sql")


class Gate(NamedTuple):
    """So many tries are free; the next waits `first_s`, each further one twice as long, up to `longest_s` (seconds).

    Within `leak_s` seconds as many tries leak away as are free.
    """

    free: int
    first_s: float
    longest_s: float
    leak_s: float


class Tried(NamedTuple):
    """What became of a try: looked at (`wait_s` 0), or to wait so many seconds. `known`: the key was said to be."""

    known: bool
    wait_s: float


SOON: Final = Tried(known=False, wait_s=1.0)
"""The answer to one that lost against others that began at the same moment."""


def count_try(key: str, gate: Gate) -> Tried:
    """Count a try, or say how long it must wait."""
    row = queries.fetch_one(_SQL["count_try"], {"key": key, **gate._asdict()})
    if row is None:
        return SOON
    known, wait_s = row
    return Tried(known, wait_s)


def know(key: str) -> None:
    """Keep that this key signed in; its tries are forgotten."""
    queries.run(_SQL["know"], {"key": key})


def take_back(key: str) -> None:
    """One try was none."""
    queries.run(_SQL["take_back"], {"key": key})


def forget(*, keep_s: float, known_s: float, rows_max: int) -> int:
    """Forget what was not tried for so long, known keys after `known_s`; returns how many."""
    return queries.run(_SQL["forget"], {"keep_s": keep_s, "known_s": known_s, "rows_max": rows_max})
