"""Reads and edits shared limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

import orjson

from scheduler.policy.breaker import Breaker
from scheduler.policy.declarations import LimitSettings, OverrideSettings
from scheduler.policy.types import PriorityClass, ResourceId, ResourceKind, ResourceView
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("resources.sql")


class Pause(NamedTuple):
    """Since when nothing is taken of a limit, who said so and why."""

    at: float
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A resource by name: what is in force (`view`, semaphores with all permits free), what is declared and overridden.

    `override` is None unless it lasts, `pause` unless it is paused; `taken_total` is what was ever taken.
    """

    name: str
    view: ResourceView
    version: int
    taken_total: float
    declared: LimitSettings
    override: OverrideSettings | None
    pause: Pause | None
    breaker: Breaker


@asked
def load(names: Sequence[str] | None = None) -> Question[list[ResourceRow]]:
    """Resources by name, or all of them."""
    params = {"names": None if names is None else list(names)}
    return Question(_SQL["read_resources"], params, lambda rows: [_row(row) for row in rows])


def _row(row: queries.Row) -> ResourceRow:
    resource, name, kind, level, level_at, rate, burst, permits, margin, factor, blocked_until, *tail = row
    version, taken, declared_rate, declared_burst, declared_permits, ceilings, lasts, *tail = tail
    override, (paused_at, paused_by, pause_reason), breaker = tail[:4], tail[4:7], Breaker(*tail[7:])
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
        open_until=breaker.open_until,
        probing=breaker.probe is not None,
        paused=paused_at is not None,
    )
    declared = LimitSettings(
        rate=declared_rate,
        burst=declared_burst,
        permits=declared_permits,
        margin=margin,
        ceilings=None if ceilings is None else orjson.loads(ceilings),
    )
    return ResourceRow(
        name,
        view,
        version,
        taken,
        declared,
        _override(*override) if lasts else None,
        None if paused_at is None else Pause(paused_at, paused_by, pause_reason),
        breaker,
    )


def _override(
    rate: float | None, burst: float | None, permits: int | None, until: float | None
) -> OverrideSettings | None:
    if rate is None and burst is None and permits is None:
        return None
    return OverrideSettings(rate=rate, burst=burst, permits=permits, until=until)


@dataclass(frozen=True, slots=True)
class Holder:
    """An attempt that holds a part of a limit since `since` (Unix seconds)."""

    task: int
    pool: str
    tenant: str
    priority: PriorityClass
    amount: float
    since: float


def load_holders(resource: ResourceId, *, rows_max: int) -> list[Holder]:
    """Who holds a limit, longest first."""
    rows = queries.fetch(_SQL["holders"], {"resource": resource, "rows_max": rows_max})
    return [Holder(task, pool, tenant, PriorityClass(p), n, since) for task, pool, tenant, p, n, since in rows]


@dataclass(frozen=True, slots=True)
class Waiters:
    """How many tasks of a pool and class are ready and need a limit."""

    pool: str
    priority: PriorityClass
    number: int


def load_waiters(resource: ResourceId) -> list[Waiters]:
    """Who waits with need of a limit, by pool and class."""
    rows = queries.fetch(_SQL["waiters"], {"resource": resource})
    return [Waiters(pool, PriorityClass(priority), n) for pool, priority, n in rows]


@asked
def load_held() -> Question[dict[ResourceId, float]]:
    """What live leases hold, by resource."""
    return Question(
        _SQL["held_by_resource"], {}, lambda rows: {ResourceId(resource): float(held) for resource, held in rows}
    )


def add(
    name: str,
    kind: ResourceKind,
    *,
    rate: float,
    burst: float,
    permits: int,
    margin: float,
    ceilings: Mapping[str, float] | None = None,
) -> ResourceId | None:
    """Add a resource with a full bucket; None when the name is taken."""
    settings = LimitSettings(rate=rate, burst=burst, permits=permits, margin=margin, ceilings=ceilings)
    row = queries.fetch_one(_SQL["add_resource"], {"name": name, "kind": kind.value, **_params(settings)})
    return None if row is None else ResourceId(row[0])


def date_level(name: str) -> None:
    """Bring a bucket's level up to date, before its limit is changed in the same transaction."""
    queries.run(_SQL["date_level"], {"name": name})


def edit(name: str, *, version: int, settings: LimitSettings) -> int | None:
    """Change the declared limit; the new version, or None when `version` is not the current one."""
    row = queries.fetch_one(_SQL["edit_resource"], {"name": name, "version": version, **_params(settings)})
    return None if row is None else int(row[0])


def set_override(name: str, override: OverrideSettings, *, version: int | None = None) -> int | None:
    """Let this go before what is declared; one without figures lifts it.

    The new version, or None when `version` (None: whatever it is) is not the current one.
    """
    row = queries.fetch_one(_SQL["set_override"], {"name": name, "version": version, **asdict(override)})
    return None if row is None else int(row[0])


def touch(name: str) -> None:
    """Move a limit's version on after a change that is kept elsewhere."""
    queries.run(_SQL["touch_resource"], {"name": name})


def _params(settings: LimitSettings) -> dict[str, object]:
    ceilings = None if settings.ceilings is None else orjson.dumps(dict(settings.ceilings)).decode()
    return {**asdict(settings), "ceilings": ceilings}
