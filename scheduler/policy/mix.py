"""Decides which limits a pool's work needs, how much of each a task takes, and which part of the work needs it at all.

Learned from what waits and runs, with a memory, because what runs at one moment is a small sample of what comes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from scheduler.policy.autoscale import LimitUse
from scheduler.policy.limits import capacity, effective_rate
from scheduler.policy.queueing import smoothing
from scheduler.policy.types import DemandId, ResourceId, ResourceKind, ResourceView

MEMORY_S: Final = 30.0
PARTS_MAX: Final = 100
FORGOTTEN_BELOW: Final = 0.01


class Part(NamedTuple):
    """Work with one demand: how many tasks wait or run, and the mean amounts that one takes (empty: not seen)."""

    tasks: float
    amounts: tuple[float, ...] = ()


Mix = Mapping[DemandId, Part]


class NamedLimit(NamedTuple):
    """A shared limit by its name."""

    name: str
    view: ResourceView


def learn_mix(before: Mix, seen: Mix, *, elapsed_s: float) -> dict[DemandId, Part]:
    """The mix after one more look. The first look counts whole; beyond PARTS_MAX demands the rarest are forgotten."""
    weight = smoothing(elapsed_s, MEMORY_S) if before else 1.0
    merged = {
        demand: Part(
            _toward(before[demand].tasks if demand in before else 0.0, _tasks(seen, demand), weight),
            _amounts(before.get(demand), seen.get(demand), weight),
        )
        for demand in before.keys() | seen.keys()
    }
    kept = [(demand, part) for demand, part in merged.items() if part.tasks >= FORGOTTEN_BELOW]
    return dict(sorted(kept, key=lambda item: (-item[1].tasks, item[0]))[:PARTS_MAX])


def _tasks(mix: Mix, demand: DemandId) -> float:
    return mix[demand].tasks if demand in mix else 0.0


def _amounts(before: Part | None, seen: Part | None, weight: float) -> tuple[float, ...]:
    if before is None or not before.amounts:
        return seen.amounts if seen is not None else ()
    if seen is None or not seen.amounts:
        return before.amounts
    return tuple(_toward(old, new, weight) for old, new in zip(before.amounts, seen.amounts, strict=True))


def _toward(old: float, new: float, weight: float) -> float:
    return old + weight * (new - old)


def limit_uses(
    mix: Mix, needs: Mapping[DemandId, tuple[ResourceId, ...]], limits: Mapping[ResourceId, NamedLimit]
) -> tuple[LimitUse, ...]:
    """How the work uses each limit that it needs, in order of name."""
    total = sum(part.tasks for part in mix.values())
    tasks: dict[ResourceId, float] = defaultdict(float)
    taken: dict[ResourceId, float] = defaultdict(float)
    for demand, part in mix.items():
        for resource, amount in zip(needs.get(demand, ()), part.amounts, strict=False):
            tasks[resource] += part.tasks
            taken[resource] += part.tasks * amount
    found = [
        _use(limits[resource], taken[resource] / n, min(1.0, n / total))
        for resource, n in tasks.items()
        if resource in limits
    ]
    return tuple(sorted(found))


def _use(limit: NamedLimit, amount: float, share: float) -> LimitUse:
    if limit.view.kind is ResourceKind.TOKEN_BUCKET:
        return LimitUse(limit.name, amount, share, per_s=effective_rate(limit.view))
    return LimitUse(limit.name, amount, share, permits=capacity(limit.view))
