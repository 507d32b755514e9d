"""Decides what of the rows that were found is a page, and from where the pages beside it go on.

Lists are newest first. Whoever asks for a page reads one row more than it shows: that row tells whether there is more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turned(Generic[T]):
    """The rows of a page, and those beyond which the older and the newer page begin; None where there is none."""

    rows: tuple[T, ...]
    older: T | None
    newer: T | None


def turn(found: Sequence[T], *, rows_max: int, back: bool, first: bool) -> Turned[T]:
    """The page of `rows_max` in these rows, newest first, of which one more was asked for.

    `back`: they were looked for above a place: the nearest are at the end, and older ones are known to be there.
    `first`: no place was named, so that nothing is newer.
    """
    more = len(found) > rows_max
    rows = tuple(found[-rows_max:] if back else found[:rows_max])
    if not rows:
        return Turned(rows, None, None)
    return Turned(rows, rows[-1] if more or back else None, rows[0] if (more if back else not first) else None)
