"""What calls taught about limits: the breaker's and the pace's memory, and pauses. One row for each limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scheduler.policy.aimd import Pace
from scheduler.policy.breaker import Breaker
from scheduler.policy.types import ResourceId
from scheduler.store import queries

_SQL: Final = queries.load("lessons.sql")


class Lessons(NamedTuple):
    """What is remembered of one limit, looked at at this time; `taken` is what was ever taken of it."""

    breaker: Breaker
    pace: Pace
    taken: float
    at: float


def lock(resources: Sequence[ResourceId]) -> dict[ResourceId, Lessons]:
    """Lock limits in the planner's order until the transaction ends, and read what they remember."""
    rows = queries.fetch(_SQL["lock_states"], {"resources": queries.array(sorted(resources))})
    return {
        ResourceId(resource): Lessons(Breaker(*breaker), Pace(factor, cut_at, paced_at, paced_taken), taken, at)
        for resource, at, taken, factor, cut_at, paced_at, paced_taken, *breaker in rows
    }


def store(lessons: Mapping[ResourceId, Lessons]) -> None:
    """Remember this of limits that are locked."""
    breakers = [each.breaker for each in lessons.values()]
    paces = [each.pace for each in lessons.values()]
    queries.run(
        _SQL["store_lessons"],
        {
            "resources": queries.array(lessons),
            "factor": queries.array(p.factor for p in paces),
            "cut_at": queries.array(p.cut_at for p in paces),
            "paced_at": queries.array(p.since for p in paces),
            "paced_taken": queries.array(p.taken for p in paces),
            "open_until": queries.array(b.open_until for b in breakers),
            "opens": queries.array(b.opens for b in breakers),
            "probe_lease": queries.array(b.probe for b in breakers),
            "breaker_at": queries.array(b.changed_at for b in breakers),
            "window_at": queries.array(b.window_at for b in breakers),
            "good": queries.array(b.good for b in breakers),
            "bad": queries.array(b.bad for b in breakers),
            "good_before": queries.array(b.good_before for b in breakers),
            "bad_before": queries.array(b.bad_before for b in breakers),
            "slowest_s": queries.array(b.slowest_s for b in breakers),
        },
    )


def pause(resources: Sequence[ResourceId], *, actor: str, reason: str) -> list[str]:
    """Let nothing be taken of these limits; the names of those that were not paused before."""
    params = {"resources": queries.array(sorted(resources)), "actor": actor[:200], "reason": reason}
    return [name for (name,) in queries.fetch(_SQL["pause"], params)]


def resume(resource: ResourceId) -> bool:
    """Let be taken of a limit again; False when it is not paused."""
    return queries.fetch_one(_SQL["resume"], {"resource": resource}) is not None
