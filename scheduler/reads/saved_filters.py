"""The named filters that a person is offered."""

from __future__ import annotations

from typing import Final

from scheduler.store.saved_filters import SavedRow, load_saved

__all__ = ["SavedRow", "saved_filters"]

SHOWN_MAX: Final = 100


def saved_filters(person: int) -> list[SavedRow]:
    """A person's own and then the shared ones, by name."""
    return load_saved(person, rows_max=SHOWN_MAX)
