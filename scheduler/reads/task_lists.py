"""Tasks that match a filter, a page at a time, and how many there are as far as it is worth counting.

A page never costs more than it looks at: when the tasks that match are far apart it says where it stopped, and goes on
from there when asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.policy.filters import Filter, FilterFault, parse_filter, refusal
from scheduler.policy.types import TaskId, TenantId
from scheduler.reads.turning import turn
from scheduler.store import dead as dead_store
from scheduler.store import filters as store
from scheduler.store.dead import ListedRow
from scheduler.store.dispatch import load_now
from scheduler.store.filters import Look, Place, Search

__all__ = [
    "Filter",
    "FoundCount",
    "FoundPage",
    "ListedRow",
    "count_above",
    "find_ids",
    "find_page",
    "read_filter",
    "top_of",
]

PAGE_ROWS: Final = 50
LOOK_MAX: Final = 20_000
LOOK_FAR_MAX: Final = 4_000
"""Tasks that one page or count passes at most, and where each costs a look at other tables: a tenth of a second."""
COUNT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class FoundCount:
    """How many match: `n`, or more than that when `more`; `passed` is how many were looked at when that is not all."""

    n: int
    more: bool = False
    passed: int | None = None


@dataclass(frozen=True, slots=True)
class FoundPage:
    """Tasks that match, and the places to go on from: None where there is nothing more.

    `stopped` says that the page ends because it looked far enough, not because there is nothing more. `as_of` is the
    moment of the look in Unix seconds. `count` is of all pages, `top` the place of the first row, 0 without any.
    """

    rows: tuple[ListedRow, ...]
    older: int | None
    newer: int | None
    stopped: bool
    as_of: float
    count: FoundCount
    top: int = 0


def read_filter(text: str) -> Filter:
    """The filter that a text asks for. Raises Refused, naming the place of the fault."""
    found = parse_filter(text)
    if isinstance(found, FilterFault):
        raise refusal(found)
    return found


def find_page(
    wanted: Filter, tenant: TenantId | None, *, older: int | None = None, newer: int | None = None
) -> FoundPage:
    """The newest that match, or those beyond a place. Raises Refused for a name that nobody has."""
    now = load_now()
    search = _search(wanted, tenant, now)
    if newer is not None:
        found = store.find(search, bound=newer, back=True, look_max=_look_max(search), rows_max=PAGE_ROWS + 1)
        if len(found) > PAGE_ROWS:
            page = turn(found[::-1], rows_max=PAGE_ROWS, back=True, first=False)
            places = page.rows[-1].place, page.rows[0].place
            return FoundPage(_rows(page.rows), *places, stopped=False, as_of=now, count=_count(search), top=places[1])
        older = None  # Whoever comes to the top sees the newest page whole.
    return _plain_page(search, older, now) if search.is_plain else _picked_page(search, older, now)


def _plain_page(search: Search, older: int | None, now: float) -> FoundPage:
    """A page on a walk of which everything matches."""
    found = store.find(search, bound=older, back=False, look_max=LOOK_MAX, rows_max=PAGE_ROWS + 1)
    page = turn(found, rows_max=PAGE_ROWS, back=False, first=older is None)
    count = FoundCount(len(page.rows)) if older is None and page.older is None else _count(search)
    beyond = None if page.older is None else page.older.place
    above = _above(page.rows, older)
    return FoundPage(_rows(page.rows), beyond, above, stopped=False, as_of=now, count=count, top=_top(page.rows))


def _picked_page(search: Search, older: int | None, now: float) -> FoundPage:
    """A page of those that match, of so many; the newest page is counted with the same look."""
    seen = _look(search, older)
    shown, is_full = seen.found[:PAGE_ROWS], len(seen.found) > PAGE_ROWS
    stopped = not is_full and seen.passed == _look_max(search)
    beyond = shown[-1].place if is_full else (seen.lowest if stopped else None)
    count = _counted(search, seen) if older is None else _count(search)
    return FoundPage(
        _rows(shown), beyond, _above(shown, older), stopped=stopped, as_of=now, count=count, top=_top(shown)
    )


def _above(shown: Sequence[Place], older: int | None) -> int | None:
    if older is None:
        return None
    return shown[0].place if shown else older - 1


def _top(shown: Sequence[Place]) -> int:
    return shown[0].place if shown else 0


def top_of(wanted: Filter, tenant: TenantId | None) -> int:
    """The place of the newest that matches, 0 when none does. Raises Refused for a name that nobody has."""
    search = _search(wanted, tenant, load_now())
    found = store.find(search, bound=None, back=False, look_max=_look_max(search), rows_max=1)
    return _top(found)


def count_above(wanted: Filter, tenant: TenantId | None, place: int) -> FoundCount:
    """How many match above a place, as far as one page goes. Raises Refused for a name that nobody has."""
    search = _search(wanted, tenant, load_now())
    found = store.find(search, bound=place, back=True, look_max=_look_max(search), rows_max=PAGE_ROWS + 1)
    return FoundCount(min(len(found), PAGE_ROWS), more=len(found) > PAGE_ROWS)


def find_ids(
    wanted: Filter, tenant: TenantId | None, *, before: int | None, rows_max: int
) -> tuple[list[TaskId], int | None]:
    """Ids of matching tasks beyond a place, newest first, and the place to go on from, None at the end."""
    search = _search(wanted, tenant, load_now())
    look_max = _look_max(search)
    found = store.find(search, bound=before, back=False, look_max=look_max, rows_max=rows_max + 1)
    shown = found[:rows_max]
    if len(found) > rows_max:
        return [place.task for place in shown], shown[-1].place
    seen = None if search.is_plain else store.look(search, bound=before, look_max=look_max, rows_max=1)
    beyond = seen.lowest if seen is not None and seen.passed == look_max else None
    return [place.task for place in shown], beyond


def _count(search: Search) -> FoundCount:
    if not search.is_plain:
        return _counted(search, _look(search, None))
    n = store.count(search, look_max=LOOK_MAX, count_max=COUNT_MAX + 1)
    return FoundCount(min(n, COUNT_MAX), more=n > COUNT_MAX)


def _counted(search: Search, seen: Look) -> FoundCount:
    """How many match, from a look at the newest."""
    if seen.matches > COUNT_MAX:
        return FoundCount(COUNT_MAX, more=True)
    stopped = seen.passed == _look_max(search)
    return FoundCount(seen.matches, more=stopped, passed=seen.passed if stopped else None)


def _look(search: Search, older: int | None) -> Look:
    return store.look(search, bound=older, look_max=_look_max(search), rows_max=PAGE_ROWS + 1)


def _look_max(search: Search) -> int:
    return LOOK_FAR_MAX if search.is_far else LOOK_MAX


def _search(wanted: Filter, tenant: TenantId | None, now: float) -> Search:
    search = store.compile_filter(wanted, tenant=tenant, as_of=now)
    if isinstance(search, FilterFault):
        raise refusal(search)
    return search


def _rows(places: Sequence[Place]) -> tuple[ListedRow, ...]:
    return tuple(dead_store.load_listed([place.task for place in places]))
