"""Finds the tasks that a filter asks for: puts the pieces of `sql/filters.sql` together and binds every value.

Which walk it takes decides what a search costs: the narrowest index whose order is a list's order. What a walk cannot
do is a condition on the tasks it passes, and a walk is limited: a page says how far it looked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString, NamedTuple, assert_never

import psycopg
from django.db import OperationalError, transaction

from scheduler.policy.filters import (
    DEAD,
    DISCARDED,
    ID_MAX,
    Filter,
    FilterFault,
    Has,
    Is,
    Key,
    Measure,
    Sign,
    Term,
    Than,
    states_in,
)
from scheduler.policy.fingerprints import read_fingerprint
from scheduler.policy.states import TaskState
from scheduler.policy.types import PriorityClass, TaskId, TenantId
from scheduler.store import control, queries

_SQL: Final = queries.load("filters.sql")
_ESCAPED: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})
_SIGNS: Final = {Sign.OVER: "over", Sign.UNDER: "under", Sign.AT_LEAST: "at_least", Sign.AT_MOST: "at_most"}
_DIED: Final = {TaskState.DEAD_LETTERED.value, TaskState.FAILED.value, DEAD}


class Piece(NamedTuple):
    """A part of a statement with the values it binds, in their order.

    `far`: it looks at other rows for each task. `near`: at nothing of the task, but for what the walk itself has.
    """

    text: LiteralString
    params: tuple[object, ...] = ()
    far: bool = False
    near: bool = False


class Walk(NamedTuple):
    """An index and what of it is walked. `along` names the column of the places: t, p or d.

    `holds` are the keys whose terms hold for all that stands on it.
    """

    name: LiteralString
    along: LiteralString
    params: tuple[object, ...] = ()
    holds: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """A filter with the names in it found, as of a moment (Unix seconds)."""

    walk: Walk
    conditions: tuple[Piece, ...]

    @property
    def is_plain(self) -> bool:
        """Whether everything on the walk matches."""
        return not self.conditions

    @property
    def is_far(self) -> bool:
        """Whether each task that is passed costs a look at other rows, as those of one tenant do: they lie apart."""
        return self.walk.along == "p" or any(condition.far for condition in self.conditions)

    @property
    def is_counted_alone(self) -> bool:
        """Whether dead letters, or what a tenant has, can be counted without a look at the tasks."""
        return (
            all(c.near for c in self.conditions)
            if self.walk.along == "d"
            else self.walk.name == "walk_tenant" and self.is_plain
        )


class Place(NamedTuple):
    """A task that was found, and its place in the order of the walk."""

    task: TaskId
    place: int


class Look(NamedTuple):
    """What one pass along a walk saw: the first matches, newest first, how many there were, and how far it went.

    `passed` tasks were passed, the last of them at the place `lowest` (0: none were).
    """

    found: list[Place]
    matches: int
    passed: int
    lowest: int


def compile_filter(
    wanted: Filter, *, tenant: TenantId | None, as_of: float, frozen: bool = False
) -> Search | FilterFault:
    """The search for what `tenant` (None: anyone) may see of it; or which name in it does not exist.

    `frozen` leaves out what came after `as_of`.
    """
    names = _find_names(wanted, tenant)
    if isinstance(names, FilterFault):
        return names
    walk = _choose_walk(wanted, names, tenant)
    pieces = [_condition(term, names, as_of, walk) for term in wanted.terms if not _holds(term, walk)]
    if tenant is not None and walk.name != "walk_tenant":
        pieces.append(Piece(_SQL["of_tenant"], (tenant,)))
    if frozen:
        pieces.append(Piece(_SQL["as_of"], (as_of,), near=True))
    return Search(walk, tuple(pieces))


def find(search: Search, *, bound: int | None, back: bool, look_max: int, rows_max: int) -> list[Place]:
    """Matches beyond the place `bound`, newest first; with `back` those just above it, oldest first."""
    order = _SQL["oldest_first"] if back else _SQL["newest_first"]
    parts = [Piece(_SQL["ids_of"]), *_walked(search, bound, back=back, look_max=look_max), *_such(search.conditions)]
    rows = _fetch([*parts, Piece(order, (rows_max,))])
    return [Place(TaskId(task), place) for task, place in rows]


def look(search: Search, *, bound: int | None, look_max: int, rows_max: int) -> Look:
    """Pass `look_max` tasks of a walk once, newest first: the first matches, and how many there are."""
    parts = [Piece(_SQL["look_open"], (rows_max, rows_max))]
    for n, condition in enumerate(search.conditions):
        parts += [Piece("AND")] * (n > 0) + [condition]
    parts += [Piece(_SQL["look_of"]), *_walked(search, bound, back=False, look_max=look_max)]
    ((tasks, places, matches, passed, lowest),) = _fetch([*parts, Piece(_SQL["look_close"])])
    found = [Place(TaskId(task), place) for task, place in zip(tasks or (), places or (), strict=True)]
    return Look(found, matches, passed, lowest or 0)


def count(search: Search, *, look_max: int, count_max: int) -> int:
    """How many match, up to `count_max`, among the newest `look_max` of the walk."""
    walk = _walked(search, None, back=False, look_max=look_max, alone=search.is_counted_alone)
    parts = [Piece(_SQL["count_of"]), *walk, *_such(search.conditions), Piece(_SQL["up_to"], (count_max,))]
    ((found,),) = _fetch(parts)
    return int(found)


def count_within(search: Search, *, count_max: int, within_s: float) -> int | None:
    """How many match of all there are, up to `count_max`; None when that takes longer than so many seconds."""
    try:
        with transaction.atomic():
            queries.run(_SQL["give_up_after"], (f"{1000 * within_s:.0f}",))
            return count(search, look_max=ID_MAX, count_max=count_max)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            return None
        raise


def freeze(search: Search, operation: int, *, rows_max: int) -> int:
    """Make all that match the items of an operation, up to `rows_max`; returns how many."""
    walk = _walked(search, None, back=False, look_max=ID_MAX)
    inner = [Piece(_SQL["ids_of"]), *walk, *_such(search.conditions), Piece(_SQL["newest_first"], (rows_max,))]
    statement, params = _joined([Piece(_SQL["freeze_open"], (operation,)), *inner, Piece(_SQL["freeze_close"])])
    return queries.run(statement, params)


def _fetch(parts: Sequence[Piece]) -> list[queries.Row]:
    statement, params = _joined(parts)
    return queries.fetch(statement, params)


def _joined(parts: Sequence[Piece]) -> tuple[LiteralString, list[object]]:
    return "\n".join([part.text for part in parts]), [value for part in parts for value in part.params]


def _walked(search: Search, bound: int | None, *, back: bool, look_max: int, alone: bool = False) -> list[Piece]:
    beyond = (0 if back else ID_MAX) if bound is None else bound
    name: LiteralString = "newer_" if back else "older_"
    walk = search.walk
    along = walk.name.replace("walk_", "alone_") if alone else walk.name
    return [Piece(_SQL[along], walk.params), Piece(_SQL[name + walk.along], (beyond, look_max))]


def _such(conditions: Sequence[Piece]) -> list[Piece]:
    parts = [Piece(_SQL["such_that"])]
    for condition in conditions:
        parts += [Piece("AND"), condition]
    return parts


class _Names(NamedTuple):
    pools: dict[str, int]
    tenants: dict[str, int]


def _find_names(wanted: Filter, tenant: TenantId | None) -> _Names | FilterFault:
    """The ids of the pools and tenants that are named; the first name that nobody has, or that another tenant has."""
    said = [term for term in wanted.terms if isinstance(term, Is)]
    pools = {value for term in said if term.key is Key.POOL for value in term.values}
    slugs = {value for term in said if term.key is Key.TENANT for value in term.values}
    found = _Names(
        {row.name: row.id for row in control.load_pools(sorted(pools))} if pools else {},
        {row.slug: row.id for row in control.load_tenants(sorted(slugs)) if tenant in {None, row.id}} if slugs else {},
    )
    for term in said:
        known = {Key.POOL: found.pools, Key.TENANT: found.tenants}.get(term.key)
        for value in term.values:
            if known is not None and value not in known:
                return FilterFault(term.at, f"There is no {term.key} {value!r}.")
    return found


def _choose_walk(wanted: Filter, names: _Names, tenant: TenantId | None) -> Walk:
    """The narrowest walk on which everything stands that the filter can match."""
    if (tasks := wanted.values_of(Key.TASK)) is not None:
        return Walk("walk_ids", "t", (list(map(int, tasks)),), (Key.TASK,))
    if (keys := wanted.values_of(Key.KEY)) is not None:
        return Walk("walk_key", "t", (list(keys),), (Key.KEY,))
    owner = _only(wanted, Key.TENANT, names.tenants) if tenant is None else tenant
    states = set(wanted.values_of(Key.STATE) or ())
    if states and states <= _DIED | {DISCARDED}:
        return _choose_dead_walk(wanted, names, owner, states)
    named = states_in(tuple(states))
    if DEAD in states or DISCARDED in states or not named:
        return _newest(owner, tenant)
    if named == {TaskState.RUNNING}:
        return Walk("walk_running", "t", (), (Key.STATE,))
    if named == {TaskState.READY}:
        return Walk("walk_ready", "t", (), (Key.STATE,))
    if named <= {TaskState.SCHEDULED, TaskState.RETRYING}:
        return Walk("walk_due", "t")
    return _newest(owner, tenant)


def _newest(owner: int | None, tenant: TenantId | None) -> Walk:
    if owner is None:
        return Walk("walk_tasks", "t")
    return Walk("walk_tenant", "p", (owner,), (Key.TENANT,) if tenant is None else ())


def _choose_dead_walk(wanted: Filter, names: _Names, owner: int | None, states: set[str]) -> Walk:
    if states == {DISCARDED}:
        return Walk("walk_discarded", "d", (), (Key.STATE,))
    if states != {DEAD}:
        return Walk("walk_dead", "d")
    groups = wanted.values_of(Key.FINGERPRINT) or ()
    if len(groups) == 1:
        return Walk("walk_fingerprint", "d", (read_fingerprint(groups[0]),), (Key.STATE, Key.FINGERPRINT))
    if owner is not None:
        return Walk("walk_dead_tenant", "d", (owner,), (Key.STATE, Key.TENANT))
    pool = _only(wanted, Key.POOL, names.pools)
    if pool is not None:
        return Walk("walk_dead_pool", "d", (pool,), (Key.STATE, Key.POOL))
    return Walk("walk_kept", "d", (), (Key.STATE,))


def _holds(term: Term, walk: Walk) -> bool:
    """Whether the term says of all that stands on the walk what is so already."""
    return isinstance(term, Is) and term.key in walk.holds and not term.negated


def _only(wanted: Filter, key: Key, known: dict[str, int]) -> int | None:
    """The one that the filter names, if it names one alone."""
    values = wanted.values_of(key) or ()
    return known[values[0]] if len(values) == 1 else None


def _condition(term: Term, names: _Names, as_of: float, walk: Walk) -> Piece:
    match term:
        case Is(key=Key.REASON, values=values) if walk.along == "d":
            positive = Piece(_SQL["reason_of_dead"], (list(values),), near=True)
        case Is():
            positive = _is(term, names)
        case Than():
            positive = _than(term, as_of)
        case Has(text=text):
            pattern = f"%{text.translate(_ESCAPED)}%"
            positive = Piece(_SQL["text"], (pattern, pattern, pattern), far=True)
        case never:
            assert_never(never)
    if not term.negated:
        return positive
    return Piece(_SQL["not_so"] + " " + positive.text + " " + _SQL["otherwise_false"], *positive[1:])


def _is(term: Is, names: _Names) -> Piece:
    values = term.values
    match term.key:
        case Key.POOL:
            return Piece(_SQL["pool"], ([names.pools[value] for value in values],))
        case Key.TENANT:
            return Piece(_SQL["tenant"], ([names.tenants[value] for value in values],))
        case Key.CLASS:
            return Piece(_SQL["class"], ([int(PriorityClass[value.upper()]) for value in values],))
        case Key.STATE:
            dead = [kept for word, kept in ((DEAD, True), (DISCARDED, False)) if word in values]
            named = [state.value for state in states_in(values)]
            return Piece(_SQL["state"], (named, dead), far=True) if dead else Piece(_SQL["state_named"], (named,))
        case Key.FINGERPRINT:
            return Piece(_SQL["fingerprint"], ([read_fingerprint(value) for value in values],), far=True)
        case Key.TASK:
            return Piece(_SQL["task"], ([int(value) for value in values],))
        case Key.KIND | Key.KEY | Key.REASON:
            return Piece(_SQL[term.key.value], (list(values),), far=term.key is Key.REASON)
        case never:
            assert_never(never)


def _than(term: Than, as_of: float) -> Piece:
    params: tuple[object, ...] = (as_of,) if term.measure is Measure.AGE else ()
    return Piece(
        _SQL[term.measure.value] + " " + _SQL[_SIGNS[term.sign]],
        (*params, term.bound),
        far=term.measure is Measure.COST,
    )
