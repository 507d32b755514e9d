"""A pool's figures over the last minutes, from its attempts: asked for by people and programs, never by a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.errors import NotFound
from scheduler.policy.figures import Spread, adherence, busy_s, efficiency, spread
from scheduler.policy.states import WAITING
from scheduler.policy.types import PriorityClass
from scheduler.reads.scale import pool_scale
from scheduler.store import control, overview
from scheduler.store.dispatch import load_now
from scheduler.store.figures import load_attempts, load_promises

WINDOW_S: Final = 300.0
HORIZON_S: Final = 60.0
ATTEMPTS_MAX: Final = 5_000
"""Newest attempts that are looked at; a pool with more of them in the window is told by these."""


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """A pool now, and how it did since `window_s` ago. Rates are parts of 1, None while there is nothing to tell."""

    name: str
    capacity: int
    busy: int
    held: int
    desired: int
    pending_by_class: Mapping[str, int]
    ready: int
    reservations: int
    window_s: float
    dispatched: int
    succeeded: int
    failed: int
    retried: int
    priority_adherence: float | None
    fixed_start_hit_rate: float | None
    utilization: float
    schedule_efficiency: float | None
    wait: Spread
    run: Spread
    worker_s: float


def pool_figures(name: str, *, window_s: float = WINDOW_S) -> PoolFigures:
    """The figures of the pool of that name; `worker_s` are the seconds its slots were in use. Raises NotFound."""
    rows = control.load_pools([name]) if "\x00" not in name else []
    if not rows:
        raise NotFound(f"There is no pool named {name!r}.", code="unknown_pool")
    pool, settings = rows[0].id, rows[0].settings
    since = load_now() - window_s
    ended, running = load_attempts(pool, window_s=window_s, rows_max=ATTEMPTS_MAX)
    seen = [*ended, *running]
    counts = overview.load_counts()
    promises = load_promises(pool, window_s=window_s, horizon_s=HORIZON_S)
    first = [each for each in seen if each.number == 1 and each.started_at > since]
    oldest = min((each.ready_at for each in seen), default=since)
    spent_s = busy_s(seen, since=since)
    span_s = max(0.001, since + window_s - max(since, oldest))
    return PoolFigures(
        name=name,
        capacity=settings.slots,
        busy=len(running),
        held=promises.held,
        desired=pool_scale(name).desired,
        pending_by_class={p.label: sum(counts.get((pool, p, s.value), 0) for s in WAITING) for p in PriorityClass},
        ready=sum(counts.get((pool, p, "ready"), 0) for p in PriorityClass),
        reservations=promises.ahead,
        window_s=window_s,
        dispatched=sum(1 for each in seen if each.started_at > since),
        succeeded=sum(1 for each in ended if each.succeeded),
        failed=sum(1 for each in ended if not each.succeeded),
        retried=sum(1 for each in seen if each.number > 1 and each.started_at > since),
        priority_adherence=adherence(first),
        fixed_start_hit_rate=promises.met / promises.due if promises.due else None,
        utilization=min(1.0, spent_s / (settings.slots * span_s)) if settings.slots else 0.0,
        schedule_efficiency=efficiency(seen, slots=settings.slots, since=since),
        wait=spread([each.started_at - each.ready_at for each in first]),
        run=spread([each.finished_at - each.started_at for each in ended if each.succeeded]),
        worker_s=spent_s,
    )
