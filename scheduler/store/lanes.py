"""Reads what the lane book is told: all lanes, or what came to some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import orjson

from scheduler.policy.lanebook import Arrivals, LaneBook
from scheduler.policy.types import DemandId, FairCounter, LaneKey, PoolId, PriorityClass, TenantId
from scheduler.store import queries

if TYPE_CHECKING:
    from scheduler.store.dispatch import Control

_SQL: Final = queries.load("dispatch.sql")
_CLASSES: Final = tuple(PriorityClass)


def lane_key(pool: int, priority: int, tenant: int, demand: int) -> LaneKey:
    """A lane, as its columns stand in a row."""
    return LaneKey(PoolId(pool), _CLASSES[priority], TenantId(tenant), DemandId(demand))


def arrivals_of(rows: list[Any]) -> dict[LaneKey, Arrivals]:
    """How often something came to which lanes, and its last mark."""
    return {lane_key(*lane): (times, last) for *lane, times, last, _ in rows}


def bases_of(found: Iterable[tuple[int, int | None]]) -> dict[DemandId, DemandId]:
    """What demands of runs need beside their run's leave; None of others."""
    return {DemandId(demand): DemandId(base) for demand, base in found if base is not None}


def rewrite(book: LaneBook, control: Control) -> None:
    """Write a book anew with every lane there is. What `control` saw of arrivals is in it."""
    row = queries.fetch_one(_SQL["read_all_lanes"])
    assert row is not None  # noqa: S101 - a SELECT without FROM gives a row
    lanes, counters, clocks = map(parsed, row)
    book.rewrite(
        ((lane_key(*lane), ready_at) for *lane, ready_at, _ in lanes),
        {(TenantId(tenant), _CLASSES[p]): FairCounter(value, at) for tenant, p, value, at in counters},
        {_CLASSES[priority]: value for priority, value in clocks},
        folds=control.folds,
        arrivals=control.arrivals,
        bases=bases_of((demand, base) for _, _, _, demand, _, base in lanes),
        now=control.now,
    )


def parsed(text: str | None) -> list[Any]:
    """A list that came as JSON; NULL is what `json_agg` makes of no rows."""
    found: list[Any] = [] if text is None else orjson.loads(text)
    return found
