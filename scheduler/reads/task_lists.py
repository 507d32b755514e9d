"""Tasks that match a filter, a page at a time, and how many there are as far as it is worth counting.

A page never costs more than it looks at: when the tasks that match are far apart it says where it stopped, and goes on
from there when asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.policy.filters import Filter, FilterFault, parse_filter, refusal
from scheduler.policy.types import TaskId, TenantId
from scheduler.store import dead as dead_store
from scheduler.store import filters as store
from scheduler.store.dead import ListedRow
from scheduler.store.dispatch import load_now
from scheduler.store.filters import Place, Search

__all__ = ["Filter", "FoundCount", "FoundPage", "ListedRow", "find_ids", "find_page", "read_filter"]

PAGE_ROWS: Final = 50
LOOK_MAX: Final = 20_000
"""Tasks that one page or count passes at most."""
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
    moment of the look in Unix seconds. `count` is of all pages.
    """

    rows: tuple[ListedRow, ...]
    older: int | None
    newer: int | None
    stopped: bool
    as_of: float
    count: FoundCount


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
        found = store.find(search, bound=newer, back=True, look_max=LOOK_MAX, rows_max=PAGE_ROWS + 1)
        if len(found) > PAGE_ROWS:
            shown = found[PAGE_ROWS - 1 :: -1]
            places = shown[-1].place, shown[0].place
            return FoundPage(_rows(shown), *places, stopped=False, as_of=now, count=_count(search))
        older = None  # Whoever comes to the top sees the newest page whole.
    found = store.find(search, bound=older, back=False, look_max=LOOK_MAX, rows_max=PAGE_ROWS + 1)
    shown, is_full = found[:PAGE_ROWS], len(found) > PAGE_ROWS
    above = None if older is None else (shown[0].place if shown else older - 1)
    stopped = None if is_full else _stopped_at(search, older)
    beyond = shown[-1].place if is_full else stopped
    is_all = older is None and not is_full and stopped is None
    count = FoundCount(len(shown)) if is_all else _count(search)
    return FoundPage(_rows(shown), beyond, above, stopped=stopped is not None, as_of=now, count=count)


def find_ids(
    wanted: Filter, tenant: TenantId | None, *, before: int | None, rows_max: int
) -> tuple[list[TaskId], int | None]:
    """Ids of matching tasks beyond a place, newest first, and the place to go on from, None at the end."""
    search = _search(wanted, tenant, load_now())
    found = store.find(search, bound=before, back=False, look_max=LOOK_MAX, rows_max=rows_max + 1)
    shown = found[:rows_max]
    beyond = shown[-1].place if len(found) > rows_max else _stopped_at(search, before)
    return [place.task for place in shown], beyond


def _count(search: Search) -> FoundCount:
    n = store.count(search, look_max=LOOK_MAX, count_max=COUNT_MAX + 1)
    if n > COUNT_MAX:
        return FoundCount(COUNT_MAX, more=True)
    stopped = _stopped_at(search, None) is not None
    return FoundCount(n, more=stopped, passed=LOOK_MAX if stopped else None)


def _search(wanted: Filter, tenant: TenantId | None, now: float) -> Search:
    search = store.compile_filter(wanted, tenant=tenant, as_of=now)
    if isinstance(search, FilterFault):
        raise refusal(search)
    return search


def _stopped_at(search: Search, bound: int | None) -> int | None:
    """The place at which a look from `bound` stopped short of the end."""
    if search.is_plain:
        return None
    reached = store.extent(search, bound=bound, back=False, look_max=LOOK_MAX)
    return reached.lowest if reached.passed == LOOK_MAX else None


def _rows(places: list[Place]) -> tuple[ListedRow, ...]:
    return tuple(dead_store.load_listed([place.task for place in places]))
