"""Invented workloads on which forecasts are judged: how work comes, who sends it, how long it takes and how it fails.

Each is a different reason for a forecast to be wrong. Nothing here knows how forecasts are made.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp, pi, sin, sqrt
from typing import Final

from scheduler.policy.forward import Serve
from scheduler.policy.hindsight import Hindsight
from scheduler.policy.retry import Failure
from scheduler.policy.scene import Arrival, Job, Scene, Served
from scheduler.policy.types import (
    DemandId,
    DemandView,
    FailureClass,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    TenantId,
    TenantView,
)

POOL: Final = PoolId(1)
LIMIT: Final = ResourceId(1)
DEMAND: Final = DemandId(1)
ERROR: Final = Failure(FailureClass.ERROR, "invented")
THROTTLED: Final = Failure(FailureClass.THROTTLED, "invented", 5.0)
STEP_S: Final = 10.0
AMPLE: Final = 1e6
CLASSES: Final = {PriorityClass.HIGH: 0.2, PriorityClass.NORMAL: 0.6, PriorityClass.LOW: 0.2}

Pieces = Iterator[tuple[float, float]]
"""How work comes: so many seconds at so many arrivals per second, one after another without end."""
Pattern = Callable[[random.Random], Pieces]


def steadily(per_s: float) -> Pattern:
    """Without any pattern."""

    def pieces(_chance: random.Random) -> Pieces:
        while True:
            yield STEP_S, per_s

    return pieces


def in_bursts(*per_s: float, burst_s: float, lull_s: float) -> Pattern:
    """One of these rates for a time, then nothing for a time; both exponential."""

    def pieces(chance: random.Random) -> Pieces:
        while True:
            yield chance.expovariate(1.0 / burst_s), chance.choice(per_s)
            yield chance.expovariate(1.0 / lull_s), 0.0

    return pieces


def in_waves(per_s: float, *, part: float, period_s: float) -> Pattern:
    """A sine: a day, made short."""

    def pieces(_chance: random.Random) -> Pieces:
        at = 0.0
        while True:
            yield STEP_S, per_s * (1.0 + part * sin(2.0 * pi * at / period_s))
            at += STEP_S

    return pieces


def wildly(per_s: float, *, spread: float, lasting: float) -> Pattern:
    """Rates whose logarithm wanders around a mean: `spread` is its deviation, `lasting` its correlation over a step."""

    def pieces(chance: random.Random) -> Pieces:
        at = chance.gauss(0.0, spread)
        while True:
            yield STEP_S, per_s * exp(at - spread * spread / 2.0)
            at = lasting * at + sqrt(1.0 - lasting * lasting) * chance.gauss(0.0, spread)

    return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A pool, a limit, and traffic. `service_spread` is the deviation of the logarithm of durations.

    `classes` and `tenants` are shares of the arrivals; an attempt fails, or is throttled for five seconds, so often.
    """

    comes: Pattern
    slots: int = 64
    limit_per_s: float = AMPLE
    burst: float | None = None
    mean_s: float = 1.0
    service_spread: float = 0.8
    classes: Mapping[PriorityClass, float] = field(default_factory=lambda: {PriorityClass.NORMAL: 1.0})
    tenants: tuple[float, ...] = (1.0,)
    failing: float = 0.0
    throttled: float = 0.0


WORKLOADS: Final[Mapping[str, Workload]] = {
    "steady": Workload(comes=steadily(9.8), slots=10),
    "bursty": Workload(comes=in_bursts(2, 5, 10, 15, burst_s=20, lull_s=30), slots=8, mean_s=1.38),
    "failing": Workload(comes=steadily(4.0), slots=50, limit_per_s=4.5, mean_s=2.0, failing=0.1, throttled=0.002),
    "limited": Workload(comes=wildly(3.0, spread=1.2, lasting=0.6), limit_per_s=4.0),
    "classes": Workload(comes=wildly(3.0, spread=1.0, lasting=0.6), limit_per_s=3.5, classes=CLASSES),
    "classes in slots": Workload(comes=in_bursts(4, 8, 16, burst_s=30, lull_s=30), slots=6, classes=CLASSES),
    "tenants": Workload(comes=wildly(4.0, spread=1.0, lasting=0.6), limit_per_s=5.0, tenants=(8, 4, 2, 1, 1)),
    "long services": Workload(comes=steadily(3.6), slots=16, mean_s=4.0, service_spread=1.5),
    "waves": Workload(comes=in_waves(4.0, part=0.6, period_s=1_200), limit_per_s=5.0, classes=CLASSES),
}


def scene_of(workload: Workload) -> Scene:
    """Where it begins: buckets full, nothing running."""
    burst = workload.limit_per_s if workload.burst is None else workload.burst
    tenants = [TenantId(n) for n, _ in enumerate(workload.tenants, 1)]
    return Scene(
        now=0.0,
        pools={POOL: PoolView(POOL, workload.slots, 0)},
        tenants={tenant: TenantView(tenant) for tenant in tenants},
        resources={LIMIT: ResourceView(LIMIT, ResourceKind.TOKEN_BUCKET, burst, 0.0, workload.limit_per_s, burst)},
        demands={DEMAND: DemandView(DEMAND, (LIMIT,))},
    )


def arrivals_of(workload: Workload, seconds: float, chance: random.Random) -> Iterator[Arrival]:
    """The traffic of so many seconds."""
    tenant_edges, class_edges = (list(accumulate(x)) for x in (workload.tenants, workload.classes.values()))
    classes, begins = list(workload.classes), 0.0
    for lasts_s, per_s in workload.comes(chance):
        at = begins
        while per_s > 0.0 and (at := at + chance.expovariate(per_s)) < min(seconds, begins + lasts_s):
            tenant = TenantId(1 + bisect(tenant_edges, chance.random() * tenant_edges[-1]))
            priority = classes[bisect(class_edges, chance.random() * class_edges[-1])]
            spread = workload.service_spread
            runs_s = workload.mean_s * chance.lognormvariate(-spread * spread / 2.0, spread)
            yield Arrival(at, LaneKey(POOL, priority, tenant, DEMAND), (1.0,), runs_s)
        begins += lasts_s
        if begins >= seconds:
            return


def serves(workload: Workload, chance: random.Random) -> Serve:
    """How attempts go."""

    def serve(job: Job, _now: float) -> Served:
        draw = chance.random()
        if draw < workload.failing:
            return Served(job.runs_s, ERROR)
        return Served(job.runs_s, THROTTLED if draw < workload.failing + workload.throttled else None)

    return serve


def walk(workload: Workload, *, seconds: float, seed: int, every_s: float) -> Hindsight:
    """Let so much of a workload come, foretelling every so often, and wait for the end of it."""
    world = random.Random(seed)  # noqa: S311 - chance here makes traffic, not secrets
    imagination = random.Random(seed + 1)  # noqa: S311 - nor here
    walked = Hindsight(
        scene_of(workload),
        arrivals_of(workload, seconds, world),
        draw=random.Random(seed + 2).random,  # noqa: S311 - nor here
        imagine=imagination.random,
        serve=serves(workload, random.Random(seed + 3)),  # noqa: S311 - nor here
        every_s=every_s,
    )
    walked.play()
    return walked
