"""Gathers why a pool does not start more: its gates now, each class's wait, and what was decided about its slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.policy.explain import Reason, Surroundings, explain_pool
from scheduler.policy.types import LaneKey, PoolId, PriorityClass, TaskId, WaitReason
from scheduler.reads.pools import Pause, PoolDetail, pause_of, pool_detail, unknown_pool
from scheduler.reads.scale import PoolScale, pool_scale
from scheduler.reads.snapshot import latest_snapshot
from scheduler.reads.why import free_slots
from scheduler.store import control, dispatch, fixed_starts, overview, tasks

_NOTHING: Final[Mapping[str, Mapping[str, float | None]]] = {}
LANES_MAX: Final = 200
"""Lanes looked at for the tasks that wait longest: beyond that many, the most urgent classes."""


@dataclass(frozen=True, slots=True)
class ClassWait:
    """How a class of a pool waits. `slo_s` is what it may wait; None where nothing was set or nothing waits.

    `forecast` is the wait of a task submitted now, `p50_s` and `p90_s`; None where too little is known.
    """

    name: str
    waiting: int
    oldest_task: TaskId | None
    oldest_waiting_s: float | None
    slo_s: float | None
    forecast: Mapping[str, float | None] | None = None


@dataclass(frozen=True, slots=True)
class PoolExplanation:
    """The answer. `as_of` is Unix seconds."""

    pool: PoolDetail
    reasons: tuple[Reason, ...]
    classes: tuple[ClassWait, ...]
    scale: PoolScale
    as_of: float


def pool_why(name: str) -> PoolExplanation:
    """Why the pool of that name does not start more. Raises NotFound."""
    pool = pool_detail(name)
    now = dispatch.load_now()
    owner = control.load_pools([name])[0].id
    waiting = sum(pool.waiting.values())
    held, held_for = fixed_starts.load_held(owner)
    around = Surroundings(
        now=now,
        pool=name,
        paused_by=None if pool.pause is None else pool.pause.by,
        pause_reason="" if pool.pause is None else pool.pause.reason,
        tenant_suspended=False,
        slots=pool.settings.slots,
        running=pool.running,
        free_slots=free_slots(owner),
        ahead=0,
        held=held,
        held_for=held_for,
    )
    picture = _picture(name)
    classes = _classes(pool, _longest(owner) if waiting else {}, now, picture.get("forecast") or {})
    return PoolExplanation(pool, explain_pool(around, waiting, _short(picture)), classes, pool_scale(name), now)


RUNNING_SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class PoolStory:
    """What stands on a pool's page beside what moves there; `as_of` is Unix seconds.

    `waiting` is the task of each class that waits longest, most urgent class first; `running` are the attempts that
    have run longest, so many at most.
    """

    name: str
    pause: Pause | None
    waiting: tuple[tuple[str, TaskId], ...]
    running: list[overview.RunningTask]
    as_of: float


def pool_story(name: str) -> PoolStory:
    """The pool of that name; nothing is counted, which its live part does. Raises NotFound."""
    rows = control.load_pools([name]) if "\x00" not in name else []
    if not rows:
        raise unknown_pool(name)
    longest = sorted(_longest(rows[0].id).items())
    return PoolStory(
        name,
        pause_of(rows[0]),
        tuple((priority.label, task) for priority, (_, task) in longest),
        overview.load_running_tasks(name, rows_max=RUNNING_SHOWN_MAX),
        dispatch.load_now(),
    )


def _classes(
    pool: PoolDetail,
    longest: Mapping[PriorityClass, tuple[float, TaskId]],
    now: float,
    forecast: Mapping[str, Mapping[str, float | None]] = _NOTHING,
) -> tuple[ClassWait, ...]:
    slo = pool.settings.slo or {}
    return tuple(
        ClassWait(
            name=priority.label,
            waiting=pool.waiting[priority.label],
            oldest_task=longest[priority][1] if priority in longest else None,
            oldest_waiting_s=max(0.0, now - longest[priority][0]) if priority in longest else None,
            slo_s=slo.get(priority.label),
            forecast=forecast.get(priority.label),
        )
        for priority in PriorityClass
    )


def _longest(pool: PoolId) -> dict[PriorityClass, tuple[float, TaskId]]:
    """The task of each class that has been ready for the longest, with the time since when."""
    lanes: list[LaneKey] = sorted(tasks.load_ready_by_lane(pool))[:LANES_MAX]
    found: dict[PriorityClass, tuple[float, TaskId]] = {}
    for lane, heads in tasks.load_lane_heads(pool, lanes).items():
        for head in heads:
            since = (head.ready_at, head.id)
            found[lane.priority] = min(found.get(lane.priority, since), since)
    return found


def _picture(pool: str) -> Mapping[str, Any]:
    """The pool in the newest picture."""
    row = latest_snapshot()
    entries: Any = row.body.get("pools", []) if row is not None else []
    return next((entry for entry in entries if entry.get("name") == pool), {})


def _short(picture: Mapping[str, Any]) -> Reason | None:
    """The limit that the newest plan held the pool's next task back for."""
    bound = picture.get("bound_by")
    if not bound or bound.get("code") not in (WaitReason.RESOURCE, WaitReason.BREAKER_OPEN):
        return None
    return Reason(str(bound["code"]), _sentence(str(bound["text"])), {"resource": bound.get("resource")})


def _sentence(text: str) -> str:
    return f"The limit {text}"
