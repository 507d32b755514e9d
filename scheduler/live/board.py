"""Parses the stored snapshot into frozen views that pages are drawn from.

It decides what a missing or odd value means (a snapshot may come from an engine one release older or newer) and
removes control characters from every text. It must never fail on a snapshot: a page with a gap beats no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Final, TypeVar

from scheduler.live.parsing import (
    NAME_CHARS_MAX,
    Json,
    items_of,
    map_of,
    name_of,
    number_of,
    series_of,
    text_of,
    texts_of,
    time_of,
    whole_of,
)
from scheduler.live.spending import NOTHING_SPENT, Spending, read_spending
from scheduler.live.troubles import NOTHING_OPEN, Death, SpentBudget, Tally, read_budgets, read_deaths, read_tally
from scheduler.reads.standings import TenantStanding

CLASSES: Final = ("critical", "high", "normal", "low")
MESSAGE_CHARS_MAX: Final = 400
SAYS_MAX: Final = 6


def element_id(kind: str, name: str) -> str:
    """An HTML id for a named thing: stable, short, and safe whatever the name holds."""
    return f"{kind}-{blake2s(name.encode(errors='replace'), digest_size=6).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all pools."""

    waiting: int = 0
    scheduled: int = 0
    running: int = 0
    started_per_s: float = 0.0
    succeeded_per_s: float = 0.0
    failed_per_min: float = 0.0
    oldest_waiting_s: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """One sample per snapshot, oldest first, at most a minute."""

    started_per_s: tuple[float, ...] = ()
    succeeded_per_s: tuple[float, ...] = ()
    failed_per_s: tuple[float, ...] = ()
    waiting: tuple[float, ...] = ()
    running: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """Who stopped a pool or a limit, why, and when in Unix seconds. `resumes_at_s` None: until somebody resumes it."""

    by: str
    reason: str
    at_s: float | None
    resumes_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """What keeps a pool from starting more, in the planner's words."""

    code: str
    resource: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """What the autoscaler decided: slots that there should be, and the arithmetic in sentences."""

    desired: int
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolView:
    """One pool. `by_class` counts ready tasks, most urgent class first; `id` is safe in HTML.

    `slo` is the wait in seconds that a class may have, `oldest_by_class` how long its oldest ready task has waited.
    `forecast` is the p50 and p90 wait in seconds of a task submitted now, by class (None: beyond the horizon); without
    one too little is known.
    """

    id: str
    name: str
    executor: str
    state: str
    pause: Pause | None
    by_class: tuple[tuple[str, int], ...]
    scheduled: int
    retrying: int
    running: int
    slots: int
    workers: int
    started_per_s: float
    succeeded_per_s: float
    failed_per_s: float
    oldest_waiting_s: float | None
    bound: Bound | None
    scale: Scale | None = None
    overload_level: int = 0
    forecast: Mapping[str, tuple[float | None, float | None]] | None = None
    slo: Mapping[str, float] = field(default_factory=dict)
    oldest_by_class: Mapping[str, float] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Ready tasks of all classes."""
        return sum(number for _, number in self.by_class)


@dataclass(frozen=True, slots=True)
class ResourceView:
    """One shared limit. `in_use` is held permits, or tokens taken per second; times are Unix seconds."""

    id: str
    name: str
    kind: str
    rate: float | None
    burst: float | None
    permits: float | None
    available: float
    capacity: float
    in_use: float
    used_fraction: float
    blocked_until_s: float | None
    next_at_s: float | None
    paused: bool
    waiting: int
    pause: Pause | None = None
    breaker: str = "closed"
    open_until_s: float | None = None
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class FailureView:
    """One failed attempt."""

    task: str
    pool: str
    tenant: str
    kind: str
    cls: str
    message: str
    attempt: int
    at_s: float | None


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One engine or worker."""

    id: str
    name: str
    pools: tuple[str, ...]
    slots: int
    busy: int
    seen_at_s: float | None
    leader: bool
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """One snapshot. ``seq`` 0 stands for "no snapshot was ever written".

    `tenant` is the one that the board was read for besides; only pages about one tenant have it.
    """

    seq: int = 0
    as_of_s: float | None = None
    interval_s: float = 1.0
    totals: Totals = field(default_factory=Totals)
    history: History = field(default_factory=History)
    pools: tuple[PoolView, ...] = ()
    resources: tuple[ResourceView, ...] = ()
    failures: tuple[FailureView, ...] = ()
    workers: tuple[WorkerView, ...] = ()
    budgets: tuple[SpentBudget, ...] = ()
    deaths: tuple[Death, ...] = ()
    spending: Spending = NOTHING_SPENT
    tally: Tally = NOTHING_OPEN
    tenant: TenantStanding | None = None

    @property
    def exists(self) -> bool:
        """Whether this is a snapshot at all."""
        return self.seq > 0

    def pool(self, name: str) -> PoolView | None:
        """The pool of that name, or nothing when this snapshot does not have it."""
        return next((pool for pool in self.pools if pool.name == name), None)


EMPTY: Final = Board()
_Named = TypeVar("_Named", PoolView, ResourceView, WorkerView)


def read_board(seq: int, as_of_s: float, body: Json) -> Board:
    """The typed view of one snapshot row."""
    totals, history = map_of(body, "totals"), map_of(body, "history")
    return Board(
        seq=seq,
        as_of_s=as_of_s,
        interval_s=number_of(body, "interval_s") or 1.0,
        totals=Totals(
            waiting=whole_of(totals, "waiting"),
            scheduled=whole_of(totals, "scheduled"),
            running=whole_of(totals, "running"),
            started_per_s=number_of(totals, "started_per_s") or 0.0,
            succeeded_per_s=number_of(totals, "succeeded_per_s") or 0.0,
            failed_per_min=number_of(totals, "failed_per_min") or 0.0,
            oldest_waiting_s=number_of(totals, "oldest_waiting_s"),
        ),
        history=History(**{name: series_of(history, name) for name in History.__dataclass_fields__}),
        pools=_unlike(_pool(item) for item in items_of(body, "pools")),
        resources=_unlike(_resource(item) for item in items_of(body, "resources")),
        failures=tuple(_failure(item) for item in items_of(body, "failures")),
        workers=_unlike(_worker(item) for item in items_of(body, "workers")),
        budgets=read_budgets(body),
        deaths=read_deaths(body),
        spending=read_spending(map_of(body, "spending")),
        tally=read_tally(map_of(body, "tally")),
    )


def _unlike(views: Iterable[_Named]) -> tuple[_Named, ...]:
    """The views without those whose id came before: an id stands once on a page, whatever the snapshot holds."""
    first: dict[str, _Named] = {}
    for view in views:
        first.setdefault(view.id, view)
    return tuple(first.values())


def _pool(item: Json) -> PoolView:
    name, waiting = name_of(item, "name"), map_of(item, "waiting")
    return PoolView(
        id=element_id("p", name),
        name=name,
        executor=name_of(item, "executor"),
        state=name_of(item, "state") or "running",
        pause=_pause(map_of(item, "pause")) if item.get("pause") else None,
        by_class=tuple((cls, whole_of(waiting, cls)) for cls in CLASSES),
        scheduled=whole_of(item, "scheduled"),
        retrying=whole_of(item, "retrying"),
        running=whole_of(item, "running"),
        slots=whole_of(item, "slots"),
        workers=whole_of(item, "workers"),
        started_per_s=number_of(item, "started_per_s") or 0.0,
        succeeded_per_s=number_of(item, "succeeded_per_s") or 0.0,
        failed_per_s=number_of(item, "failed_per_s") or 0.0,
        oldest_waiting_s=number_of(item, "oldest_waiting_s"),
        bound=_bound(map_of(item, "bound_by")) if item.get("bound_by") else None,
        scale=_scale(item, map_of(item, "scale")) if item.get("scale") else None,
        overload_level=whole_of(item, "overload_level"),
        forecast=_forecast(map_of(item, "forecast")) if item.get("forecast") else None,
        slo=_by_class(map_of(item, "slo")),
        oldest_by_class=_by_class(map_of(item, "oldest_by_class")),
    )


def _by_class(item: Json) -> dict[str, float]:
    found = {cls: number_of(item, cls) for cls in CLASSES}
    return {cls: value for cls, value in found.items() if value is not None}


def _forecast(item: Json) -> dict[str, tuple[float | None, float | None]]:
    bands = {cls: map_of(item, cls) for cls in CLASSES if item.get(cls)}
    return {cls: (number_of(band, "p50_s"), number_of(band, "p90_s")) for cls, band in bands.items()}


def _scale(pool: Json, item: Json) -> Scale:
    return Scale(whole_of(pool, "desired"), texts_of(item, "says", MESSAGE_CHARS_MAX)[:SAYS_MAX])


def _pause(item: Json) -> Pause:
    return Pause(
        by=name_of(item, "by"),
        reason=text_of(item, "reason", MESSAGE_CHARS_MAX),
        at_s=time_of(item, "at"),
        resumes_at_s=time_of(item, "resumes_at"),
    )


def _bound(item: Json) -> Bound:
    resource = name_of(item, "resource") or None
    return Bound(code=name_of(item, "code"), resource=resource, text=text_of(item, "text", MESSAGE_CHARS_MAX))


def _resource(item: Json) -> ResourceView:
    name = name_of(item, "name")
    return ResourceView(
        id=element_id("r", name),
        name=name,
        kind=name_of(item, "kind"),
        rate=number_of(item, "rate"),
        burst=number_of(item, "burst"),
        permits=number_of(item, "permits"),
        available=number_of(item, "available") or 0.0,
        capacity=number_of(item, "capacity") or 0.0,
        in_use=number_of(item, "in_use") or 0.0,
        used_fraction=min(max(number_of(item, "used_fraction") or 0.0, 0.0), 1.0),
        blocked_until_s=time_of(item, "blocked_until"),
        next_at_s=time_of(item, "next_at"),
        paused=bool(item.get("paused")),
        waiting=whole_of(item, "waiting"),
        pause=_pause(map_of(item, "pause")) if item.get("pause") else None,
        breaker=name_of(item, "breaker") or "closed",
        open_until_s=time_of(item, "open_until"),
        factor=number_of(item, "factor") or 1.0,
    )


def _failure(item: Json) -> FailureView:
    return FailureView(
        task=name_of(item, "task"),
        pool=name_of(item, "pool"),
        tenant=name_of(item, "tenant"),
        kind=name_of(item, "kind"),
        cls=name_of(item, "class"),
        message=text_of(item, "message", MESSAGE_CHARS_MAX),
        attempt=whole_of(item, "attempt"),
        at_s=time_of(item, "at"),
    )


def _worker(item: Json) -> WorkerView:
    return WorkerView(
        id=name_of(item, "id"),
        name=text_of(item, "name", NAME_CHARS_MAX) or name_of(item, "id"),
        pools=texts_of(item, "pools", NAME_CHARS_MAX),
        slots=whole_of(item, "slots"),
        busy=whole_of(item, "busy"),
        seen_at_s=time_of(item, "seen_at"),
        leader=bool(item.get("leader")),
        draining=bool(item.get("draining")),
    )
