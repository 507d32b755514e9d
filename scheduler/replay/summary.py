"""What a replay comes to: waits, objectives, use of limits, cost, and series over time to draw.

Pure arithmetic over what became of each request; it decides nothing and draws nothing. Times are seconds of the trace.
A request that never started counts as late for its objective and is left out of the quantiles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from scheduler.policy.calibration import Report
from scheduler.policy.figures import quantile
from scheduler.policy.types import PriorityClass
from scheduler.replay.settings import TenantModel
from scheduler.replay.sizing import Size
from scheduler.replay.uses import Grid, Pairs, Use, declared_tenant, uses_of_limits, uses_of_pools, uses_of_quotas
from scheduler.replay.virtual import Fate, Played
from scheduler.replay.world import Work

TENANTS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of some requests, in seconds. `started` of `requests` began; the quantiles are over those."""

    who: str
    requests: int
    started: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Objective:
    """How a class did: `met` is the part of its requests that waited no longer, or were done in time."""

    who: str
    what: str
    within_s: float
    requests: int
    met: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What tokens cost, in nano-dollars, in all and by tenant."""

    total: int
    by_tenant: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Over time, `bin_s` for each value: arrivals and starts per second, and how many wait at the end of it."""

    bin_s: float
    arrivals: tuple[float, ...]
    starts: tuple[float, ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a report says of one replay. `cost` None: not priced. `calibration` None: not asked for.

    `declared` has the weight and quotas of the tenants that have some, in words; `quotas` how far they were used.
    """

    name: str
    how: str
    requests: int
    refused: int
    unfinished: int
    failed: int
    took_s: float
    total: Waits
    classes: tuple[Waits, ...]
    tenants: tuple[Waits, ...]
    tenants_left_out: int
    seats: tuple[Waits, ...]
    objectives: tuple[Objective, ...]
    limits: tuple[Use, ...]
    pools: tuple[Use, ...]
    quotas: tuple[Use, ...]
    declared: tuple[tuple[str, str], ...]
    cost: Cost | None
    sizes: tuple[Size, ...]
    calibration: Report | None
    series: Series
    wait_curve: tuple[float, ...]
    notes: tuple[str, ...]


def summarise(played: Played, *, sizes: tuple[Size, ...] = (), calibration: Report | None = None) -> Summary:
    """Add a replay up."""
    pairs = [(w, f) for w, f in zip(played.works, played.fates, strict=True) if w.refused is None]
    ends = [f.ended_s or f.started_s or f.arrived_s for _, f in pairs]
    took_s = max(ends, default=0.0)
    grid = Grid(took_s)
    tenants = _by(pairs, lambda w: w.tenant)
    tenants.sort(key=lambda waits: (-waits.requests, waits.who))
    return Summary(
        name=played.setup.name,
        how=played.how,
        requests=len(played.works),
        refused=len(played.works) - len(pairs),
        unfinished=sum(f.ended_s is None for _, f in pairs),
        failed=sum(f.ended_s is not None and not f.succeeded for _, f in pairs),
        took_s=took_s,
        total=_waits("all", pairs),
        classes=tuple(_by(pairs, lambda w: w.priority.label, order=[p.label for p in PriorityClass])),
        tenants=tuple(tenants[:TENANTS_SHOWN]),
        tenants_left_out=max(0, len(tenants) - TENANTS_SHOWN),
        seats=tuple(_by(pairs, lambda w: f"{w.priority.label} of {w.tenant}")[: 2 * TENANTS_SHOWN]),
        objectives=tuple(_objectives(played, pairs)),
        limits=tuple(uses_of_limits(played, pairs, grid)),
        pools=tuple(uses_of_pools(played, pairs, grid)),
        quotas=tuple(uses_of_quotas(played, pairs, grid)),
        declared=tuple(_declared(played)),
        cost=_cost(played, pairs),
        sizes=sizes,
        calibration=calibration,
        series=Series(
            grid.bin_s,
            grid.rate(f.arrived_s for _, f in pairs),
            grid.rate(f.started_s for _, f in pairs if f.started_s is not None),
            grid.waiting(pairs),
        ),
        wait_curve=_curve(pairs),
        notes=(*played.notes, *_notes(played)),
    )


def _waits(who: str, pairs: Pairs) -> Waits:
    waits = sorted(f.wait_s for _, f in pairs if f.wait_s is not None)
    if not waits:
        return Waits(who, len(pairs), 0, None, None, None, None, None)
    p50, p90, p95, p99 = (quantile(waits, part) for part in (0.5, 0.9, 0.95, 0.99))
    return Waits(who, len(pairs), len(waits), p50, p90, p95, p99, waits[-1])


def _by(pairs: Pairs, key: Callable[[Work], str], *, order: list[str] | None = None) -> list[Waits]:
    groups: dict[str, list[tuple[Work, Fate]]] = defaultdict(list)
    for pair in pairs:
        groups[key(pair[0])].append(pair)
    return [_waits(who, groups[who]) for who in order or sorted(groups) if who in groups]


def _objectives(played: Played, pairs: Pairs) -> Iterable[Objective]:
    for priority, model in sorted(played.setup.classes.items()):
        mine = [(w, f) for w, f in pairs if w.priority is priority]
        if not mine:
            continue
        if model.slo_s is not None:
            met = sum(f.wait_s is not None and f.wait_s <= model.slo_s for _, f in mine)
            yield Objective(priority.label, "started", model.slo_s, len(mine), met / len(mine))
        if model.deadline_s is not None:
            met = sum(f.ended_s is not None and f.ended_s - f.arrived_s <= model.deadline_s for _, f in mine)
            yield Objective(priority.label, "done", model.deadline_s, len(mine), met / len(mine))


def _cost(played: Played, pairs: Pairs) -> Cost | None:
    price = played.setup.price
    if price is None:
        return None
    tokens: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for work, fate in pairs:
        if fate.started_s is not None:
            tokens[work.tenant][0] += work.request.input_tokens
            tokens[work.tenant][1] += work.request.output_tokens
    by_tenant = sorted(((t, price.nanos(*n)) for t, n in tokens.items()), key=lambda each: (-each[1], each[0]))
    return Cost(sum(nanos for _, nanos in by_tenant), tuple(by_tenant[:TENANTS_SHOWN]))


def _declared(played: Played) -> Iterable[tuple[str, str]]:
    plain = TenantModel()
    for slug, tenant in list(played.setup.tenants.items())[:TENANTS_SHOWN]:
        if tenant.limited or tenant.weight != plain.weight:
            yield slug, declared_tenant(tenant)


def _curve(pairs: Pairs) -> tuple[float, ...]:
    """The wait that 0, 1, … 100 % of the started requests do not exceed."""
    waits = sorted(f.wait_s for _, f in pairs if f.wait_s is not None)
    return tuple(quantile(waits, part / 100) for part in range(101)) if waits else ()


def _notes(played: Played) -> list[str]:
    refused: dict[str, int] = defaultdict(int)
    for work in played.works:
        if work.refused is not None:
            refused[work.refused] += 1
    return [
        f"{n:,} requests ask for more than the limit {name} ever gives; they are refused and count for nothing else."
        for name, n in sorted(refused.items())
    ]
