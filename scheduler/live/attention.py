"""Decides what on the board needs a person, how urgent it is, and how to say it in one sentence with its cause.

Pure: the board and nothing else. It must never decide from a colour, a threshold set by a viewer, or a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from scheduler.live import wording
from scheduler.live.board import Board, PoolView, ResourceView, element_id
from scheduler.live.standing import Standing, standing
from scheduler.live.troubles import Death, SpentBudget

NOTICES_MAX: Final = 20
SYSTEM: Final = "system"
OLDEST_WAITING_S: Final = 300
SATURATED_FRACTION: Final = 0.95
FAILING_FRACTION: Final = 0.2
FAILING_PER_S_MIN: Final = 0.05
BLOCKED_LONG_S: Final = 60
OVERLOAD_ACT_LEVEL: Final = 3
OVERLOAD_SAYS: Final = (
    "refuses new low work",
    "refuses new low work, asks attempts to answer only where that is allowed",
    "refuses new low and normal work",
)


class Urgency(IntEnum):
    """Worst first."""

    ACT = 0
    WATCH = 1
    PAUSED = 2

    @property
    def word(self) -> str:
        """What the page says."""
        return {Urgency.ACT: "Act now", Urgency.WATCH: "Watch", Urgency.PAUSED: "Paused"}[self]

    @property
    def icon(self) -> str:
        """The symbol beside the word."""
        return {Urgency.ACT: "cross", Urgency.WATCH: "warn", Urgency.PAUSED: "pause"}[self]

    @property
    def tone(self) -> str:
        """The colour class of word and symbol."""
        return {Urgency.ACT: "bad", Urgency.WATCH: "warn", Urgency.PAUSED: "quiet"}[self]


@dataclass(frozen=True, slots=True)
class Notice:
    """One line under "Needs attention": ``subject`` is the linked name, ``says`` the rest of the sentence."""

    id: str
    urgency: Urgency
    kind: str
    subject: str
    says: str
    detail: str
    since_s: float | None = None

    @property
    def says_id(self) -> str:
        """The id of the element that holds `says`."""
        return f"{self.id}-says"

    @property
    def detail_id(self) -> str:
        """The id of the element that holds `detail`."""
        return f"{self.id}-detail"


def needs_attention(board: Board) -> list[Notice]:
    """Every notice of the board, most urgent first, then in order of subject; at most `NOTICES_MAX`."""
    notices = [*_engine_notices(board)]
    for pool in board.pools:
        notices.extend(_pool_notices(pool))
    for resource in board.resources:
        notices.extend(_resource_notices(board, resource))
    notices.extend(_budget_notice(budget) for budget in board.budgets)
    notices.extend(_death_notice(board, death) for death in board.deaths)
    return sorted(notices, key=lambda notice: (notice.urgency, notice.subject, notice.id))[:NOTICES_MAX]


def headline(notices: list[Notice]) -> str:
    """One sentence for screen readers; it changes only when the set of notices does."""
    if not notices:
        return "Nothing needs attention."
    subjects = wording.name_list(list(dict.fromkeys(notice.subject for notice in notices)))
    return f"{wording.plural(len(notices), 'thing needs', 'things need')} attention: {subjects}."


def _engine_notices(board: Board) -> Iterator[Notice]:
    if not board.exists or board.workers:
        return
    urgency = Urgency.ACT if board.totals.waiting else Urgency.WATCH
    detail = f"{wording.plural(board.totals.waiting, 'task')} waiting · start one with “manage.py engine”"
    yield Notice("att-engines", urgency, "engine", "Engines", "are missing: none is connected", detail)


def _pool_notices(pool: PoolView) -> Iterator[Notice]:
    if pool.state == "paused":
        yield _paused(pool)
    elif pool.bound and pool.bound.code in {"no_worker", "no_matching_worker"} and pool.waiting:
        says = f"has no worker for {wording.plural(pool.waiting, 'waiting task')}"
        yield _pool_notice(pool, "worker", Urgency.ACT, says, pool.bound.text)
    elif pool.state == "draining":
        says = "is draining and starts nothing new"
        detail = f"{wording.plural(pool.running, 'task')} still running"
        yield _pool_notice(pool, "drain", Urgency.WATCH, says, detail)
    if pool.overload_level:
        urgency = Urgency.ACT if pool.overload_level >= OVERLOAD_ACT_LEVEL else Urgency.WATCH
        detail = f"level {pool.overload_level} · {OVERLOAD_SAYS[min(pool.overload_level, len(OVERLOAD_SAYS)) - 1]}"
        yield _pool_notice(pool, "load", urgency, "is overloaded", detail)
    yield from _promise_notices(pool)
    if _is_failing(pool):
        share = wording.percent(pool.failed_per_s / (pool.failed_per_s + pool.succeeded_per_s))
        detail = f"{wording.rate(pool.failed_per_s * 60)} failures per minute"
        yield _pool_notice(pool, "fail", Urgency.ACT, f"ends {share} of its tasks in failure", detail)
    missed = any(standing(pool, cls) is Standing.MISSED for cls in pool.slo)
    if pool.state == "running" and (pool.oldest_waiting_s or 0) >= OLDEST_WAITING_S and not missed:
        says = f"has kept a task waiting for {wording.duration(pool.oldest_waiting_s)}"
        detail = pool.bound.text if pool.bound else f"{wording.plural(pool.waiting, 'task')} waiting"
        yield _pool_notice(pool, "old", Urgency.WATCH, says, detail)


def _pool_notice(pool: PoolView, aspect: str, urgency: Urgency, says: str, detail: str) -> Notice:
    return Notice(f"att-{aspect}-{pool.id}", urgency, "pool", pool.name, says, detail)


def _budget_notice(budget: SpentBudget) -> Notice:
    urgency = Urgency.ACT if budget.part >= 1.0 else Urgency.WATCH
    spent = f"{wording.dollars(budget.spent_nano)} of {wording.dollars(budget.allowed_nano)}"
    detail = f"{spent} · the month ends {wording.day_and_clock(budget.ends_s)}"
    says = f"has used {wording.percent(budget.part)} of its budget"
    return Notice(element_id("att-budget", budget.tenant), urgency, "tenant", budget.tenant, says, detail)


def _death_notice(board: Board, death: Death) -> Notice:
    """What dies beside much that succeeds is to be looked at; it does not have to be now."""
    says = f"has {wording.plural(death.number, 'dead letter', 'dead letters')} with one cause, the newest just now"
    detail = f"{death.cls} · {death.shape} · {death.tenant}"
    notice_id = element_id("att-dead", f"{death.pool}/{death.tenant}/{death.cls}/{death.shape}")
    pool = board.pool(death.pool)
    urgency = Urgency.WATCH if pool and pool.succeeded_per_s and not _fails_much(pool) else Urgency.ACT
    return Notice(notice_id, urgency, "pool", death.pool, says, detail, since_s=death.at_s)


def _promise_notices(pool: PoolView) -> Iterator[Notice]:
    """A class that waits longer than it may, and one that is foreseen to."""
    if pool.state != "running":
        return
    late = [cls for cls in pool.slo if standing(pool, cls) is Standing.MISSED]
    if late:
        detail = " · ".join(
            f"{cls} has waited {wording.duration(pool.oldest_by_class[cls])}, target {wording.duration(pool.slo[cls])}"
            for cls in late
        )
        says = f"keeps {wording.name_list(late)} work waiting past its target"
        yield _pool_notice(pool, "missed", Urgency.ACT, says, detail)
    soon = [cls for cls in pool.slo if standing(pool, cls) is Standing.WILL_MISS]
    if soon:
        detail = " · ".join(f"target of {cls}: {wording.duration(pool.slo[cls])}" for cls in soon)
        says = f"will keep {wording.name_list(soon)} work waiting past its target"
        yield _pool_notice(pool, "willmiss", Urgency.WATCH, says, detail)


def _paused(pool: PoolView) -> Notice:
    waiting = f"{wording.plural(pool.waiting, 'task')} waiting" if pool.waiting else "nothing waiting"
    if not pool.pause:
        return _pool_notice(pool, "pause", Urgency.PAUSED, "is paused", waiting)
    resumes = f" · resumes at {wording.clock_utc(pool.pause.resumes_at_s)}" if pool.pause.resumes_at_s else ""
    detail = f"by {pool.pause.by} · “{pool.pause.reason}” · {waiting}{resumes}"
    return Notice(
        f"att-pause-{pool.id}", Urgency.PAUSED, "pool", pool.name, "is paused", detail, since_s=pool.pause.at_s
    )


def _is_failing(pool: PoolView) -> bool:
    return pool.failed_per_s >= FAILING_PER_S_MIN and _fails_much(pool)


def _fails_much(pool: PoolView) -> bool:
    return pool.failed_per_s >= FAILING_FRACTION * (pool.failed_per_s + pool.succeeded_per_s)


def _resource_notices(board: Board, resource: ResourceView) -> Iterator[Notice]:
    notice_id = element_id("att-r", resource.name)
    waiting = f"{wording.plural(resource.waiting, 'task')} waiting"
    if resource.pause is not None:
        urgency = Urgency.ACT if resource.pause.by == SYSTEM else Urgency.PAUSED
        detail = f"by {resource.pause.by} · “{resource.pause.reason}” · {waiting}"
        since_s = resource.pause.at_s
        yield Notice(notice_id, urgency, "resource", resource.name, "is paused", detail, since_s=since_s)
    elif resource.paused:
        detail = f"{waiting} for it"
        yield Notice(notice_id, Urgency.PAUSED, "resource", resource.name, "is paused: its limit is 0", detail)
    elif resource.breaker != "closed":
        detail = f"{waiting} · one task tries it as soon as it may"
        if resource.breaker == "open":
            detail = f"{waiting} · one task tries it at {wording.clock(resource.open_until_s)} UTC"
        yield Notice(notice_id, Urgency.ACT, "resource", resource.name, "has a provider that fails", detail)
    elif resource.blocked_until_s is not None and resource.blocked_until_s > (board.as_of_s or 0):
        left_s = resource.blocked_until_s - (board.as_of_s or 0)
        urgency = Urgency.ACT if left_s > BLOCKED_LONG_S else Urgency.WATCH
        says = f"is refused by its provider until {wording.clock(resource.blocked_until_s)} UTC"
        detail = f"{wording.plural(resource.waiting, 'task')} waiting · asks again by itself"
        yield Notice(notice_id, urgency, "resource", resource.name, says, detail)
    elif is_bottleneck(resource):
        pools = [pool.name for pool in board.pools if pool.bound and pool.bound.resource == resource.name]
        says = f"is the bottleneck of {wording.name_list(pools)}" if pools else "is used up"
        detail = f"{wording.percent(resource.used_fraction)} used · {wording.plural(resource.waiting, 'task')} waiting"
        yield Notice(notice_id, Urgency.WATCH, "resource", resource.name, says, detail)


def is_bottleneck(resource: ResourceView) -> bool:
    """Whether work waits because this resource is used up."""
    return resource.used_fraction >= SATURATED_FRACTION and resource.waiting > 0
