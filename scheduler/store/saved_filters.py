"""Reads and writes the filters that people keep under a name."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.store import queries

_SQL: Final = queries.load("saved_filters.sql")


class SavedRow(NamedTuple):
    """A filter under its name; `shared` with everybody who may look, or seen by one person alone."""

    id: int
    shared: bool
    name: str
    filter: str
    by: str


def load_saved(person: int, *, rows_max: int) -> list[SavedRow]:
    """What a person keeps, and then what all share, by name."""
    return [SavedRow(*row) for row in queries.fetch(_SQL["list_saved"], {"person": person, "rows_max": rows_max})]


def count_saved(owner: int | None) -> int:
    """How many a person keeps; None: how many are shared."""
    row = queries.fetch_one(_SQL["count_saved"], {"owner": owner})
    return 0 if row is None else int(row[0])


def drop_named(owner: int | None, name: str) -> str | None:
    """Forget the one of that name; the filter that it was, if there was one."""
    row = queries.fetch_one(_SQL["drop_named"], {"owner": owner, "name": name})
    return None if row is None else str(row[0])


def add_saved(owner: int | None, name: str, text: str, *, by: str) -> bool:
    """Keep one; False when the name was taken meanwhile."""
    params = {"owner": owner, "name": name, "filter": text, "by": by}
    return queries.fetch_one(_SQL["add_saved"], params) is not None


def drop_saved(saved: int, person: int, *, shared: bool) -> SavedRow | None:
    """Forget one of a person's, or, where that is allowed, one that is shared. None: there is no such one."""
    row = queries.fetch_one(_SQL["drop_saved"], {"id": saved, "person": person, "shared": shared})
    return None if row is None else SavedRow(*row)
