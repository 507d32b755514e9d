"""Shared limits as pages and the API show them: declared figures, what is left now, and who waits for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.errors import NotFound
from scheduler.policy.breaker import Breaker, BreakerState, state_of
from scheduler.policy.declarations import LimitSettings, OverrideSettings
from scheduler.policy.limits import effective_rate, less_held, limit_at
from scheduler.policy.types import ResourceId, ResourceView
from scheduler.store import dispatch, overview, resources
from scheduler.store.resources import Pause

_NOTHING: Final = 0.0


@dataclass(frozen=True, slots=True)
class ResourceDetail:
    """A limit now. `view` holds what is in force; `available` may be below zero, a debt; `held` is a semaphore's use.

    `refill_per_s` is what the bucket really gives: the rate less its margin, lowered after throttling.
    """

    name: str
    view: ResourceView
    version: int
    available: float
    capacity: float
    refill_per_s: float
    held: float
    closed_until: float | None
    waiting: int
    declared: LimitSettings
    override: OverrideSettings | None
    pause: Pause | None
    breaker: Breaker
    breaker_state: BreakerState

    @property
    def paused(self) -> bool:
        """Whether all work that needs it stands still: somebody paused it, or the limit is 0."""
        return self.pause is not None or self.capacity <= 0.0


def resource_detail(name: str) -> ResourceDetail:
    """The limit of that name. Raises NotFound."""
    found = _details(resources.load([name])) if "\x00" not in name else []
    if not found:
        raise NotFound(f"There is no resource named {name!r}.", code="unknown_resource")
    return found[0]


def list_resources() -> list[ResourceDetail]:
    """All limits by name."""
    return _details(resources.load())


def _details(rows: list[resources.ResourceRow]) -> list[ResourceDetail]:
    if not rows:
        return []
    now = dispatch.load_now()
    held = resources.load_held()
    waiting = _waiting()
    return [_detail(row, held.get(row.view.id, _NOTHING), waiting.get(row.view.id, 0), now=now) for row in rows]


def _detail(row: resources.ResourceRow, held: float, waiting: int, *, now: float) -> ResourceDetail:
    limit = limit_at(less_held(row.view, held), now=now)
    return ResourceDetail(
        name=row.name,
        view=row.view,
        version=row.version,
        available=limit.available,
        capacity=limit.capacity,
        refill_per_s=effective_rate(row.view) if limit.is_bucket else _NOTHING,
        held=held,
        closed_until=limit.closed_until,
        waiting=waiting,
        declared=row.declared,
        override=row.override,
        pause=row.pause,
        breaker=row.breaker,
        breaker_state=state_of(row.view.open_until, now=now),
    )


def _waiting() -> Mapping[ResourceId, int]:
    """Ready tasks by limit that they need."""
    by_demand = overview.load_waiting_by_demand()
    total: dict[ResourceId, int] = defaultdict(int)
    for demand, view in dispatch.load_demands(sorted(by_demand)).items():
        for resource in view.resources:
            total[resource] += by_demand[demand]
    return total


HOLDERS_MAX: Final = 50
"""Of those who hold a limit, as many are named: the ones that have held it longest."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Who holds a limit, longest first and so many at most, and who waits for it. `as_of` is Unix seconds."""

    holders: list[resources.Holder]
    waiters: list[resources.Waiters]
    as_of: float


def resource_use(detail: ResourceDetail) -> ResourceUse:
    """Who uses a limit now, and who would."""
    resource = detail.view.id
    now = dispatch.load_now()
    return ResourceUse(resources.load_holders(resource, rows_max=HOLDERS_MAX), resources.load_waiters(resource), now)
