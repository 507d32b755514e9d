"""Decides what each line of a page says: its state in a word, its bar, its cells' ids, and its place among the others.

Pure: views of the board in, rows for templates out. Order is coarse on purpose: rows that people aim at must not move
with every number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.live import drawing, wording
from scheduler.live.attention import OVERLOAD_SAYS, is_bottleneck
from scheduler.live.board import Board, PoolView, ResourceView

VALUE_CHARS_MAX: Final = 8
_TROUBLE: Final = {"bad": 0, "warn": 1, "quiet": 2}
_HELD_UP, _FINE = 3, 4
_POOL_CELLS: Final = ("state", "waiting", "bar", "running", "started", "wait", "oldest", "bound")
_RESOURCE_CELLS: Final = ("state", "bar", "use", "detail")


@dataclass(frozen=True, slots=True)
class Chip:
    """A state in three ways at once: symbol, word and tone."""

    icon: str
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A line of the pools table. `ids` holds the id of each live cell."""

    pool: PoolView
    ids: dict[str, str]
    chip: Chip
    bar: list[drawing.Segment]
    bound: str

    @property
    def failed_per_min(self) -> float:
        """Failed attempts per minute."""
        return self.pool.failed_per_s * 60

    @property
    def wait(self) -> str:
        """The wait of a task of the class high that is submitted now."""
        return _predicted(self.pool, "high")

    @property
    def later(self) -> str:
        """What will be waiting later: retries in backoff and tasks with a start time ahead."""
        parts = [("retrying", self.pool.retrying), ("scheduled", self.pool.scheduled)]
        return " · ".join(f"{wording.count(number)} {word}" for word, number in parts if number)

    @property
    def overload(self) -> str:
        """What the pool refuses while it is overloaded; empty while it is not."""
        level = self.pool.overload_level
        return f"level {level}: {OVERLOAD_SAYS[min(level, len(OVERLOAD_SAYS)) - 1]}" if level > 0 else ""

    @property
    def bound_sentence(self) -> str:
        """What keeps the pool from starting more, as a sentence of its own."""
        if self.bound:
            return self.bound
        return "Nothing bounds it: " + ("work starts as it comes." if self.pool.waiting else "no work is waiting.")


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A line of the resources table."""

    resource: ResourceView
    ids: dict[str, str]
    chip: Chip
    bar: list[drawing.Segment]
    use: str
    detail: str

    @property
    def kind(self) -> str:
        """The kind in words, with its declared size."""
        resource = self.resource
        if resource.kind == "semaphore":
            return f"semaphore · {wording.amount(resource.permits or resource.capacity)} permits"
        return f"token bucket · {wording.amount(resource.rate)} / s, burst {wording.amount(resource.burst)}"


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A line of a pool's classes table."""

    name: str
    number: int
    bar: list[drawing.Segment]
    share: str
    wait: str

    @property
    def wait_id(self) -> str:
        """The id of the cell with the predicted wait."""
        return f"class-{self.name}-wait"

    @property
    def count_id(self) -> str:
        """The id of the cell with the count."""
        return f"class-{self.name}-count"

    @property
    def bar_id(self) -> str:
        """The id of the cell with the bar."""
        return f"class-{self.name}-bar"

    @property
    def share_id(self) -> str:
        """The id of the cell with the percentage."""
        return f"class-{self.name}-share"


@dataclass(frozen=True, slots=True)
class Figure:
    """One large number: with a sparkline under it, or a note."""

    name: str
    label: str
    value: str
    spark: drawing.Spark | None = None
    note: str = ""

    @property
    def size(self) -> str:
        """The classes of the number: one with many digits is written smaller."""
        return "value long" if len(self.value) > VALUE_CHARS_MAX else "value"

    @property
    def dom_id(self) -> str:
        """The id of the element with the number."""
        return f"figure-{self.name}"

    @property
    def label_id(self) -> str:
        """The id of the element with the label, where the label itself may change."""
        return f"figure-{self.name}-label"

    @property
    def extra_id(self) -> str:
        """The id of the element under the number."""
        return f"figure-{self.name}-extra"


def cell_ids(row_id: str, cells: Iterable[str]) -> dict[str, str]:
    """The id of each live cell of a row."""
    return {cell: f"{row_id}-{cell}" for cell in cells}


def pool_rows(board: Board) -> list[PoolRow]:
    """Every pool, trouble first, then by name. Bars share one scale, so that lengths compare."""
    whole = max((pool.waiting for pool in board.pools), default=0)
    rows = (pool_row(pool, whole) for pool in board.pools)
    return sorted(rows, key=lambda row: (_pool_trouble(row), row.pool.name))


def pool_sections(rows: Sequence[PoolRow]) -> list[tuple[str, list[PoolRow]]]:
    """The rows by the kind of their pools, in the order in which kinds come first; one kind alone needs no heading."""
    kinds: dict[str, list[PoolRow]] = {}
    for row in rows:
        kinds.setdefault(row.pool.executor, []).append(row)
    return list(kinds.items()) if len(kinds) > 1 else [("", list(rows))]


def _pool_trouble(row: PoolRow) -> int:
    held_up = row.pool.waiting and row.pool.bound is not None
    return _TROUBLE.get(row.chip.tone, _HELD_UP if held_up else _FINE)


def pool_row(pool: PoolView, whole: int) -> PoolRow:
    """One pool against the `whole` its bar is drawn on."""
    bound = (pool.bound.text or pool.bound.code.replace("_", " ")) if pool.bound else ""
    return PoolRow(
        pool=pool,
        ids=cell_ids(pool.id, _POOL_CELLS),
        chip=_pool_chip(pool),
        bar=drawing.segments(pool.by_class, whole),
        bound=bound[:1].upper() + bound[1:] if bound and not (pool.bound and pool.bound.resource) else bound,
    )


def _pool_chip(pool: PoolView) -> Chip:
    if pool.state == "paused":
        return Chip("pause", "Paused", "quiet")
    if pool.state == "draining":
        return Chip("drain", "Draining", "warn")
    if pool.bound and pool.bound.code in {"no_worker", "no_matching_worker"} and pool.waiting:
        return Chip("cross", "No worker", "bad")
    if pool.running or pool.waiting:
        return Chip("ok", "Running", "ok")
    return Chip("idle", "Idle", "still")


def class_rows(pool: PoolView) -> list[ClassRow]:
    """The waiting tasks of a pool by class, most urgent class first."""
    return [
        ClassRow(
            name=cls,
            number=number,
            bar=drawing.segments([(cls, number)], pool.waiting),
            share=wording.percent(number / pool.waiting) if pool.waiting else wording.NONE,
            wait=_predicted(pool, cls),
        )
        for cls, number in pool.by_class
    ]


def _predicted(pool: PoolView, cls: str) -> str:
    """The wait of a task of this class that is submitted now."""
    if pool.forecast is None:
        return "insufficient data"
    if cls not in pool.forecast:
        return wording.NONE
    p50_s, p90_s = pool.forecast[cls]
    if p50_s is None:
        return "over 15 min"
    return f"{wording.glance(p50_s)} to {'over 15 min' if p90_s is None else wording.glance(p90_s)}"


def resource_rows(board: Board) -> list[ResourceRow]:
    """Every resource, worst first in coarse steps, then by name."""
    rows = (_resource_row(resource, board.as_of_s or 0.0) for resource in board.resources)
    return sorted(rows, key=lambda row: (_TROUBLE.get(row.chip.tone, _FINE), row.resource.name))


def _resource_row(resource: ResourceView, now_s: float) -> ResourceRow:
    chip = _resource_chip(resource, now_s)
    tone = "hot" if chip.tone in {"warn", "bad"} else "use"
    return ResourceRow(
        resource=resource,
        ids=cell_ids(resource.id, _RESOURCE_CELLS),
        chip=chip,
        bar=drawing.segments([(tone, resource.used_fraction)], 1.0),
        use=_use(resource),
        detail=_resource_detail(resource, now_s),
    )


def _resource_chip(resource: ResourceView, now_s: float) -> Chip:
    if resource.paused:
        return Chip("pause", "Paused", "quiet")
    if resource.breaker != "closed":
        return Chip("cross", "Down" if resource.breaker == "open" else "Trying", "bad")
    if _is_blocked(resource, now_s):
        return Chip("cross", "Refused", "bad")
    if is_bottleneck(resource):
        return Chip("warn", "Bottleneck" if resource.kind == "token_bucket" else "Full", "warn")
    if resource.used_fraction > 0:
        return Chip("ok", "In use", "ok")
    return Chip("idle", "Free", "still")


def _is_blocked(resource: ResourceView, now_s: float) -> bool:
    return resource.blocked_until_s is not None and resource.blocked_until_s > now_s


def _use(resource: ResourceView) -> str:
    if resource.kind == "semaphore":
        return f"{wording.amount(resource.in_use)} of {wording.amount(resource.permits or resource.capacity)} held"
    return f"{wording.rate(resource.in_use)} of {wording.amount(resource.rate)} / s"


def _resource_detail(resource: ResourceView, now_s: float) -> str:
    waiting = f"{wording.plural(resource.waiting, 'task')} waiting" if resource.waiting else ""
    if resource.pause is not None:
        parts = [f"by {resource.pause.by}: {resource.pause.reason}", waiting]
    elif resource.breaker == "open":
        parts = [f"tried again at {wording.clock(resource.open_until_s)} UTC", waiting]
    elif resource.breaker == "half_open":
        parts = ["one task tries it", waiting]
    elif _is_blocked(resource, now_s):
        parts = [f"asks again at {wording.clock(resource.blocked_until_s)} UTC", waiting]
    elif resource.kind == "semaphore":
        parts = [f"{wording.amount(resource.available)} free", waiting]
    else:
        parts = [f"{wording.amount(resource.available)} tokens left", _next(resource, now_s), waiting]
    if resource.factor < 1.0:
        parts.insert(0, f"at {wording.percent(resource.factor)} after refusals")
    return " · ".join(part for part in parts if part)


def _next(resource: ResourceView, now_s: float) -> str:
    if resource.next_at_s is None or resource.next_at_s <= now_s:
        return ""
    return f"next in {wording.duration(resource.next_at_s - now_s)}"


@dataclass(frozen=True, slots=True)
class SpenderRow:
    """A line of the table of those who burn most."""

    tenant: str
    burn: str
    used: str
    bar: list[drawing.Segment]
    chip: Chip


_BUDGET_CHIPS: Final = {
    "ok": Chip("ok", "OK", "ok"),
    "warned": Chip("warn", "Warned", "warn"),
    "throttled": Chip("warn", "Throttled", "warn"),
    "blocked": Chip("cross", "Blocked", "bad"),
}


def spender_rows(board: Board) -> list[SpenderRow]:
    """Those who burn most, the fastest first."""
    return [
        SpenderRow(
            tenant=view.tenant,
            burn=wording.dollars(view.burn),
            used=wording.dollars(view.spent)
            if not view.limit
            else f"{wording.dollars(view.spent)} of {wording.dollars(view.limit)}",
            bar=drawing.segments([("use", view.spent)], max(view.limit, view.spent)) if view.limit else [],
            chip=_BUDGET_CHIPS.get(view.state, Chip("idle", "No limit", "quiet")),
        )
        for view in board.spending.spenders
    ]


def overview_figures(board: Board) -> list[Figure]:
    """The six numbers of the Overview."""
    totals, history = board.totals, board.history
    figures = [
        ("waiting", "Waiting", wording.count(totals.waiting), history.waiting),
        ("running", "Running", wording.count(totals.running), history.running),
        ("started", "Started / s", wording.rate(totals.started_per_s), history.started_per_s),
        ("succeeded", "Succeeded / s", wording.rate(totals.succeeded_per_s), history.succeeded_per_s),
        ("failed", "Failed / min", wording.rate(_in_a_minute(history.failed_per_s)), history.failed_per_s),
    ]
    drawn = [
        Figure(name, label, value, spark=drawing.spark(drawing.settled(samples, board.seq), label))
        for name, label, value, samples in figures
    ]
    return [*drawn, _oldest(board)]


def _in_a_minute(per_s: Sequence[float]) -> float:
    """What the samples of the last minute come to: failures are few, and in most seconds there is none."""
    return 60 * sum(per_s) / len(per_s) if per_s else 0.0


def _oldest(board: Board) -> Figure:
    waiting = [pool for pool in board.pools if pool.oldest_waiting_s is not None]
    oldest = max(waiting, key=lambda pool: pool.oldest_waiting_s or 0.0, default=None)
    note = f"in {oldest.name}" if oldest else "nothing waits"
    return Figure("oldest", "Oldest waiting", wording.glance(board.totals.oldest_waiting_s), note=note)


def pool_figures(row: PoolRow) -> list[Figure]:
    """The six numbers of a pool's own page."""
    pool = row.pool
    used = wording.percent(pool.running / pool.slots) if pool.slots else "no slots"
    return [
        Figure("waiting", "Waiting", wording.count(pool.waiting), note=row.later or "nothing for later"),
        Figure("running", "Running", wording.count(pool.running), note=f"{used} of {wording.count(pool.slots)} slots"),
        Figure("started", "Started / s", wording.rate(pool.started_per_s), note=wording.plural(pool.workers, "worker")),
        Figure("succeeded", "Succeeded / s", wording.rate(pool.succeeded_per_s), note=_success(pool)),
        Figure("failed", "Failed / min", wording.rate(pool.failed_per_s * 60), note="for good, after retries"),
        Figure("oldest", "Oldest waiting", wording.glance(pool.oldest_waiting_s), note="since it became ready"),
    ]


def _success(pool: PoolView) -> str:
    finished_per_s = pool.succeeded_per_s + pool.failed_per_s
    return (
        f"{wording.percent(pool.succeeded_per_s / finished_per_s)} of what ended" if finished_per_s else "nothing ends"
    )
