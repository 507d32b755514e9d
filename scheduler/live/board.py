"""Parses the stored snapshot into frozen views that pages are drawn from.

It decides what a missing or odd value means (a snapshot may come from an engine one release older or newer) and
removes control characters from every text. It must never fail on a snapshot: a page with a gap beats no page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Any, Final, TypeVar

CLASSES: Final = ("critical", "high", "normal", "low")
NAME_CHARS_MAX: Final = 200
MESSAGE_CHARS_MAX: Final = 400
SAYS_MAX: Final = 6
_UNIX_S_MAX: Final = 32_503_680_000  # the year 3000

_Json = Mapping[str, Any]


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
    pools: tuple[str, ...]
    slots: int
    busy: int
    seen_at_s: float | None
    leader: bool


@dataclass(frozen=True, slots=True)
class Board:
    """One snapshot. ``seq`` 0 stands for "no snapshot was ever written"."""

    seq: int = 0
    as_of_s: float | None = None
    interval_s: float = 1.0
    totals: Totals = field(default_factory=Totals)
    history: History = field(default_factory=History)
    pools: tuple[PoolView, ...] = ()
    resources: tuple[ResourceView, ...] = ()
    failures: tuple[FailureView, ...] = ()
    workers: tuple[WorkerView, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether this is a snapshot at all."""
        return self.seq > 0

    def pool(self, name: str) -> PoolView | None:
        """The pool of that name, or nothing when this snapshot does not have it."""
        return next((pool for pool in self.pools if pool.name == name), None)


EMPTY: Final = Board()
_Named = TypeVar("_Named", PoolView, ResourceView, WorkerView)


def read_board(seq: int, as_of_s: float, body: _Json) -> Board:
    """The typed view of one snapshot row."""
    totals, history = _map(body, "totals"), _map(body, "history")
    return Board(
        seq=seq,
        as_of_s=as_of_s,
        interval_s=_number(body, "interval_s") or 1.0,
        totals=Totals(
            waiting=_whole(totals, "waiting"),
            scheduled=_whole(totals, "scheduled"),
            running=_whole(totals, "running"),
            started_per_s=_number(totals, "started_per_s") or 0.0,
            succeeded_per_s=_number(totals, "succeeded_per_s") or 0.0,
            failed_per_min=_number(totals, "failed_per_min") or 0.0,
            oldest_waiting_s=_number(totals, "oldest_waiting_s"),
        ),
        history=History(**{name: _series(history, name) for name in History.__dataclass_fields__}),
        pools=_unlike(_pool(item) for item in _items(body, "pools")),
        resources=_unlike(_resource(item) for item in _items(body, "resources")),
        failures=tuple(_failure(item) for item in _items(body, "failures")),
        workers=_unlike(_worker(item) for item in _items(body, "workers")),
    )


def _unlike(views: Iterable[_Named]) -> tuple[_Named, ...]:
    """The views without those whose id came before: an id stands once on a page, whatever the snapshot holds."""
    first: dict[str, _Named] = {}
    for view in views:
        first.setdefault(view.id, view)
    return tuple(first.values())


def _pool(item: _Json) -> PoolView:
    name, waiting = _name(item, "name"), _map(item, "waiting")
    return PoolView(
        id=element_id("p", name),
        name=name,
        executor=_name(item, "executor"),
        state=_name(item, "state") or "running",
        pause=_pause(_map(item, "pause")) if item.get("pause") else None,
        by_class=tuple((cls, _whole(waiting, cls)) for cls in CLASSES),
        scheduled=_whole(item, "scheduled"),
        retrying=_whole(item, "retrying"),
        running=_whole(item, "running"),
        slots=_whole(item, "slots"),
        workers=_whole(item, "workers"),
        started_per_s=_number(item, "started_per_s") or 0.0,
        succeeded_per_s=_number(item, "succeeded_per_s") or 0.0,
        failed_per_s=_number(item, "failed_per_s") or 0.0,
        oldest_waiting_s=_number(item, "oldest_waiting_s"),
        bound=_bound(_map(item, "bound_by")) if item.get("bound_by") else None,
        scale=_scale(item, _map(item, "scale")) if item.get("scale") else None,
        overload_level=_whole(item, "overload_level"),
        forecast=_forecast(_map(item, "forecast")) if item.get("forecast") else None,
        slo=_by_class(_map(item, "slo")),
        oldest_by_class=_by_class(_map(item, "oldest_by_class")),
    )


def _by_class(item: _Json) -> dict[str, float]:
    found = {cls: _number(item, cls) for cls in CLASSES}
    return {cls: value for cls, value in found.items() if value is not None}


def _forecast(item: _Json) -> dict[str, tuple[float | None, float | None]]:
    bands = {cls: _map(item, cls) for cls in CLASSES if item.get(cls)}
    return {cls: (_number(band, "p50_s"), _number(band, "p90_s")) for cls, band in bands.items()}


def _scale(pool: _Json, item: _Json) -> Scale:
    says = item.get("says")
    texts = [{"text": said} for said in says[:SAYS_MAX]] if isinstance(says, list) else []
    return Scale(_whole(pool, "desired"), tuple(_text(each, "text", MESSAGE_CHARS_MAX) for each in texts))


def _pause(item: _Json) -> Pause:
    return Pause(
        by=_name(item, "by"),
        reason=_text(item, "reason", MESSAGE_CHARS_MAX),
        at_s=_time(item, "at"),
        resumes_at_s=_time(item, "resumes_at"),
    )


def _bound(item: _Json) -> Bound:
    resource = _name(item, "resource") or None
    return Bound(code=_name(item, "code"), resource=resource, text=_text(item, "text", MESSAGE_CHARS_MAX))


def _resource(item: _Json) -> ResourceView:
    name = _name(item, "name")
    return ResourceView(
        id=element_id("r", name),
        name=name,
        kind=_name(item, "kind"),
        rate=_number(item, "rate"),
        burst=_number(item, "burst"),
        permits=_number(item, "permits"),
        available=_number(item, "available") or 0.0,
        capacity=_number(item, "capacity") or 0.0,
        in_use=_number(item, "in_use") or 0.0,
        used_fraction=min(max(_number(item, "used_fraction") or 0.0, 0.0), 1.0),
        blocked_until_s=_time(item, "blocked_until"),
        next_at_s=_time(item, "next_at"),
        paused=bool(item.get("paused")),
        waiting=_whole(item, "waiting"),
        pause=_pause(_map(item, "pause")) if item.get("pause") else None,
        breaker=_name(item, "breaker") or "closed",
        open_until_s=_time(item, "open_until"),
        factor=_number(item, "factor") or 1.0,
    )


def _failure(item: _Json) -> FailureView:
    return FailureView(
        task=_name(item, "task"),
        pool=_name(item, "pool"),
        tenant=_name(item, "tenant"),
        kind=_name(item, "kind"),
        cls=_name(item, "class"),
        message=_text(item, "message", MESSAGE_CHARS_MAX),
        attempt=_whole(item, "attempt"),
        at_s=_time(item, "at"),
    )


def _worker(item: _Json) -> WorkerView:
    pools = item.get("pools")
    return WorkerView(
        id=_name(item, "id"),
        pools=tuple(str(pool) for pool in pools) if isinstance(pools, list) else (),
        slots=_whole(item, "slots"),
        busy=_whole(item, "busy"),
        seen_at_s=_time(item, "seen_at"),
        leader=bool(item.get("leader")),
    )


def _map(item: _Json, key: str) -> _Json:
    value = item.get(key)
    return value if isinstance(value, Mapping) else {}


def _items(item: _Json, key: str) -> list[_Json]:
    value = item.get(key)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _number(item: _Json, key: str) -> float | None:
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _time(item: _Json, key: str) -> float | None:
    value = _number(item, key)
    return value if value is not None and 0 <= value <= _UNIX_S_MAX else None


def _whole(item: _Json, key: str) -> int:
    return int(_number(item, key) or 0)


def _series(item: _Json, key: str) -> tuple[float, ...]:
    value = item.get(key)
    if not isinstance(value, list):
        return ()
    return tuple(float(entry) for entry in value[-60:] if isinstance(entry, int | float) and math.isfinite(entry))


def _name(item: _Json, key: str) -> str:
    return _text(item, key, NAME_CHARS_MAX)


def _text(item: _Json, key: str, chars_max: int) -> str:
    value = item.get(key)
    if value is None:
        return ""
    text = "".join(char if char.isprintable() else " " for char in str(value)[: chars_max + 1])
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"
