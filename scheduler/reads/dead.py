"""Dead letters as people see them: in groups of those that died alike, with how often lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import NotFound
from scheduler.policy.filters import Filter, FilterFault, Is, Key, refusal
from scheduler.policy.fingerprints import read_fingerprint, write_fingerprint
from scheduler.policy.types import TaskId
from scheduler.store import dead as store
from scheduler.store.dead import GroupFilter, GroupPlace, GroupRow, Letter
from scheduler.store.dispatch import load_now

__all__ = ["DeadGroup", "GroupPage", "Letter", "find_group", "list_dead_groups"]

GROUPS_PER_PAGE: Final = 50
HOURS: Final = 24
HOUR_S: Final = 3600
_KEYS: Final = {Key.TENANT: "tenants", Key.POOL: "pools", Key.KIND: "kinds", Key.REASON: "reasons"}


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters that are alike; `hours` is how many died in each of the last 24, the present one last.

    `sample` is the newest of them, with its message.
    """

    row: GroupRow
    fingerprint: str
    hours: tuple[int, ...]
    sample: TaskId | None
    message: str


@dataclass(frozen=True, slots=True)
class GroupPage:
    """Groups, those that grew last first; where the next page begins; and when anybody died last, if ever."""

    groups: tuple[DeadGroup, ...]
    older: str | None
    newest_death: float | None
    as_of: float


def list_dead_groups(asked: Filter, *, older: str | None) -> GroupPage:
    """A page of groups. Raises Refused for a filter that tells no groups apart."""
    now = load_now()
    rows = store.list_groups(_filter(asked), before=_place(older), rows_max=GROUPS_PER_PAGE + 1)
    shown = rows[:GROUPS_PER_PAGE]
    last = shown[-1] if len(rows) > GROUPS_PER_PAGE else None
    beyond = None if last is None else f"{last.last_at!r}-{write_fingerprint(last.fingerprint)}"
    return GroupPage(_groups(shown, now), beyond, None if rows else store.newest_death(), now)


def find_group(fingerprint: str) -> DeadGroup:
    """The group of that fingerprint. Raises NotFound."""
    try:
        row = store.load_group(read_fingerprint(fingerprint))
    except ValueError:
        row = None
    if row is None:
        raise NotFound("There is no such group of dead letters.", code="unknown_group")
    return _groups([row], load_now())[0]


def _groups(rows: Sequence[GroupRow], now: float) -> tuple[DeadGroup, ...]:
    known = [row.fingerprint for row in rows]
    hours, newest = (store.load_hours(known, hours=HOURS), store.load_newest(known)) if known else ({}, {})
    present = int(now // HOUR_S) * HOUR_S
    times = [float(present - HOUR_S * back) for back in reversed(range(HOURS))]
    return tuple(
        DeadGroup(
            row,
            write_fingerprint(row.fingerprint),
            tuple(hours.get(row.fingerprint, {}).get(time, 0) for time in times),
            *(newest.get(row.fingerprint) or (None, "")),
        )
        for row in rows
    )


def _filter(asked: Filter) -> GroupFilter:
    found: dict[str, tuple[str, ...]] = {}
    for term in asked.terms:
        name = _KEYS.get(term.key) if isinstance(term, Is) and not term.negated else None
        if name is None or name in found or not isinstance(term, Is):
            says = f"Groups are told apart by {', '.join(_KEYS)}, each once; for anything else filter the tasks."
            raise refusal(FilterFault(term.at, says))
        found[name] = term.values
    return GroupFilter(None, found.get("tenants"), found.get("pools"), found.get("kinds"), found.get("reasons"))


def _place(older: str | None) -> GroupPlace | None:
    """Where a page begins; an address that no page gave out begins at the top."""
    if older is None:
        return None
    at, _, fingerprint = older.partition("-")
    try:
        return GroupPlace(float(at), read_fingerprint(fingerprint))
    except (ValueError, OverflowError):
        return None
