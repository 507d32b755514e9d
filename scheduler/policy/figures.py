"""Says how well a pool did lately, from its attempts. Figures for people; nothing is decided by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, nan
from typing import Final, NamedTuple

from scheduler.policy.types import PriorityClass

SLACK: Final = 1e-9
"""0.07 × 100 is a hair more than 7, and must not be an eighth."""


class AttemptFigures(NamedTuple):
    """One attempt of a pool. Times are Unix seconds; `finished_at` is now for one that runs."""

    priority: PriorityClass
    number: int
    ready_at: float
    started_at: float
    finished_at: float
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and quantiles of durations in seconds, None without any."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest of the values that at least this part of them do not exceed (nearest rank); NaN of none."""
    ranked = sorted(values)
    return ranked[max(0, ceil(part * len(ranked) - SLACK) - 1)] if ranked else nan


def spread(values: Sequence[float]) -> Spread:
    """How these durations are spread."""
    if not values:
        return Spread()
    ranked = sorted(values)
    p50, p90, p99 = (quantile(ranked, part) for part in (0.5, 0.9, 0.99))
    return Spread(sum(ranked) / len(ranked), p50, p90, p99)


def adherence(attempts: Sequence[AttemptFigures]) -> float | None:
    """The part of starts that no ready task of a better class had to watch; None without any.

    Only among these attempts: a better task that still waits is not seen.
    """
    if not attempts:
        return None
    by_start = sorted(attempts, key=lambda a: a.started_at)
    by_ready = sorted(attempts, key=lambda a: a.ready_at)
    passed = 0
    upcoming = 0
    # Classes of those that are ready at the moment looked at, each until its own start.
    waiting: list[tuple[int, float]] = []
    for attempt in by_start:
        while upcoming < len(by_ready) and by_ready[upcoming].ready_at < attempt.started_at:
            heappush(waiting, (int(by_ready[upcoming].priority), by_ready[upcoming].started_at))
            upcoming += 1
        while waiting and waiting[0][1] <= attempt.started_at:
            heappop(waiting)
        if waiting and waiting[0][0] < int(attempt.priority):
            passed += 1
    return 1.0 - passed / len(attempts)


def efficiency(attempts: Sequence[AttemptFigures], *, slots: int, since: float) -> float | None:
    """The part of the pool's slot time in use, of the time in which anything was ready or ran; None without any."""
    spans = sorted((max(since, a.ready_at), a.finished_at) for a in attempts if a.finished_at > since)
    if not spans or slots < 1:
        return None
    occupied, end = 0.0, since
    for first, last in spans:
        occupied += max(0.0, last - max(first, end))
        end = max(end, last)
    return min(1.0, busy_s(attempts, since=since) / (occupied * slots)) if occupied > 0.0 else None


def busy_s(attempts: Sequence[AttemptFigures], *, since: float) -> float:
    """The seconds that slots were in use since then."""
    return sum(max(0.0, a.finished_at - max(since, a.started_at)) for a in attempts)
