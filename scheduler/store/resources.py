"""Reads and edits shared limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import ResourceId, ResourceKind, ResourceView
from scheduler.store import queries

_SQL: Final = queries.load("resources.sql")


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A resource by name: its view (semaphores with all permits free), version, and what was ever taken from it."""

    name: str
    view: ResourceView
    version: int
    taken_total: float


def load(names: Sequence[str] | None = None) -> list[ResourceRow]:
    """Resources by name, or all of them."""
    return [
        _row(row) for row in queries.fetch(_SQL["read_resources"], {"names": None if names is None else list(names)})
    ]


def _row(row: queries.Row) -> ResourceRow:
    resource, name, kind, level, level_at, rate, burst, permits, margin, factor, blocked_until, version, taken = row
    of_kind = ResourceKind(kind)
    view = ResourceView(
        id=ResourceId(resource),
        kind=of_kind,
        level=float(permits) if of_kind is ResourceKind.SEMAPHORE else level,
        level_at=level_at,
        rate=rate,
        burst=burst,
        permits=permits,
        margin=margin,
        factor=factor,
        blocked_until=blocked_until,
    )
    return ResourceRow(name, view, version, taken)


def load_held() -> dict[ResourceId, float]:
    """What live leases hold, by resource."""
    return {ResourceId(resource): float(held) for resource, held in queries.fetch(_SQL["held_by_resource"])}


def add(name: str, kind: ResourceKind, *, rate: float, burst: float, permits: int, margin: float) -> ResourceId | None:
    """Add a resource with a full bucket; None when the name is taken."""
    params = {"name": name, "kind": kind.value, "rate": rate, "burst": burst, "permits": permits, "margin": margin}
    row = queries.fetch_one(_SQL["add_resource"], params)
    return None if row is None else ResourceId(row[0])


def edit(name: str, *, version: int, rate: float, burst: float, permits: int, margin: float) -> int | None:
    """Change the declared limit; the new version, or None when `version` is not the current one."""
    params = {"name": name, "version": version, "rate": rate, "burst": burst, "permits": permits, "margin": margin}
    row = queries.fetch_one(_SQL["edit_resource"], params)
    return None if row is None else int(row[0])
