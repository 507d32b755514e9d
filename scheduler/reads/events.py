"""Events as listeners read them: in order, from a place on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import TenantId
from scheduler.store import events as store
from scheduler.store.events import Event, told

__all__ = ["Bounds", "Event", "bounds", "events_after", "newest", "told"]

EVENTS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Bounds:
    """`last`: the newest place. `first`: who has read up to here or further can go on and has missed nothing."""

    last: int
    first: int


def bounds(tenant: TenantId | None) -> Bounds:
    """For the events of one tenant, or of all."""
    found = store.load_bounds(tenant)
    return Bounds(found.last, found.kept_from)


def events_after(tenant: TenantId | None, after: int, *, events_max: int = EVENTS_MAX) -> list[Event]:
    """The next events beyond a place."""
    return store.load(tenant, after=after, events_max=min(events_max, EVENTS_MAX))


def newest(after: int) -> tuple[int, dict[int, int]]:
    """The newest place, and by tenant (0: the installation) the newest of its events beyond `after`."""
    return store.load_newest(after)
