"""What a replay comes to: waits, objectives, use of limits, cost, and series over time to draw.

Pure arithmetic over what became of each request; it decides nothing and draws nothing. Times are seconds of the trace.
A request that never started counts as late for its objective and is left out of the quantiles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from scheduler.policy.calibration import Report
from scheduler.policy.types import PriorityClass
from scheduler.replay.settings import Counts, LimitModel
from scheduler.replay.sizing import Size
from scheduler.replay.virtual import Fate, Played
from scheduler.replay.world import Work

BINS_MAX: Final = 180
BIN_MIN_S: Final = 1.0
FULL: Final = 0.95
"""A limit that is used so far, while work waits, is what holds the work up."""
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
class Use:
    """How far a limit or a pool was used: the mean and the busiest stretch, as parts of what it admits.

    `holds_up` is the part of the time in which it was used up while work waited.
    """

    name: str
    declared: str
    mean: float
    busiest: float
    holds_up: float
    series: tuple[float, ...]


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
    """All that a report says of one replay. `cost` None: not priced. `calibration` None: not asked for."""

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
    grid = _Grid(took_s)
    waiting = grid.waiting(pairs)
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
        limits=tuple(_limit_use(played, pairs, grid, waiting)),
        pools=tuple(_pool_use(played, pairs, grid, waiting)),
        cost=_cost(played, pairs),
        sizes=sizes,
        calibration=calibration,
        series=Series(
            grid.bin_s,
            grid.rate(f.arrived_s for _, f in pairs),
            grid.rate(f.started_s for _, f in pairs if f.started_s is not None),
            waiting,
        ),
        wait_curve=_curve(pairs),
        notes=(*played.notes, *_notes(played)),
    )


Pairs = Sequence[tuple[Work, Fate]]


def _waits(who: str, pairs: Pairs) -> Waits:
    waits = sorted(f.wait_s for _, f in pairs if f.wait_s is not None)
    if not waits:
        return Waits(who, len(pairs), 0, None, None, None, None, None)
    p50, p90, p95, p99 = (quantile(waits, part) for part in (0.5, 0.9, 0.95, 0.99))
    return Waits(who, len(pairs), len(waits), p50, p90, p95, p99, waits[-1])


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value that `part` of the values do not exceed (nearest rank)."""
    return ordered[max(0, ceil(part * len(ordered)) - 1)]


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


# Use over time


class _Grid:
    """Time cut into equal bins."""

    def __init__(self, took_s: float) -> None:
        self.bin_s = max(BIN_MIN_S, took_s / BINS_MAX)
        self.bins = floor(took_s / self.bin_s) + 1

    def place(self, at: float) -> int:
        return min(self.bins - 1, int(at / self.bin_s))

    def rate(self, times: Iterable[float]) -> tuple[float, ...]:
        return self.amounts((at, 1.0) for at in times)

    def amounts(self, events: Iterable[tuple[float, float]]) -> tuple[float, ...]:
        """Amount per second in each bin."""
        sums = [0.0] * self.bins
        for at, amount in events:
            sums[self.place(at)] += amount
        return tuple(s / self.bin_s for s in sums)

    def waiting(self, pairs: Pairs) -> tuple[int, ...]:
        """How many wait at the end of each bin."""
        steps = [0] * (self.bins + 1)
        for _, fate in pairs:
            steps[self.place(fate.arrived_s)] += 1
            if fate.started_s is not None:
                steps[self.place(fate.started_s)] -= 1
        found, number = [], 0
        for step in steps[:-1]:
            number += step
            found.append(number)
        return tuple(found)

    def in_use(self, stretches: Iterable[tuple[float, float]]) -> tuple[float, ...]:
        """How many stretches of time (from, to) cover a bin, on average."""
        sums = [0.0] * self.bins
        for begin, end in stretches:
            first, last = self.place(begin), self.place(end)
            for n in range(first, last + 1):
                sums[n] += max(0.0, min(end, (n + 1) * self.bin_s) - max(begin, n * self.bin_s))
        return tuple(s / self.bin_s for s in sums)


def _limit_use(played: Played, pairs: Pairs, grid: _Grid, waiting: Sequence[int]) -> Iterable[Use]:
    for name, limit in played.setup.limits.items():
        mine = [(w, f) for w, f in pairs if name in w.amounts and f.started_s is not None]
        if limit.counts is Counts.CONCURRENCY:
            used, admits, grain = grid.in_use(_stretches(mine)), float(limit.permits), 0.0
        else:
            used = grid.amounts((f.started_s or 0.0, w.amounts[name]) for w, f in mine)
            admits = limit.per_minute / 60.0 * (1.0 - limit.margin)
            # What is left in a bin is used up when one more request would not have fitted.
            grain = sum(w.amounts[name] for w, _ in mine) / max(1, len(mine)) / grid.bin_s
        yield _use(name, _declared(limit), used, admits, waiting, grain=grain)


def _pool_use(played: Played, pairs: Pairs, grid: _Grid, waiting: Sequence[int]) -> Iterable[Use]:
    for name, pool in played.setup.pools.items():
        used = grid.in_use(_stretches([(w, f) for w, f in pairs if w.pool == name]))
        yield _use(name, f"{pool.slots} slots", used, float(pool.slots), waiting, grain=0.0)


def _stretches(pairs: Pairs) -> Iterable[tuple[float, float]]:
    return ((f.started_s, f.ended_s) for _, f in pairs if f.started_s is not None and f.ended_s is not None)


def _use(
    name: str, declared: str, used: Sequence[float], admits: float, waiting: Sequence[int], *, grain: float
) -> Use:
    parts = tuple(each / admits if admits > 0.0 else 0.0 for each in used)
    full = [each + grain >= FULL * admits for each in used]
    holding = sum(so and number > 0 for so, number in zip(full, waiting, strict=True))
    return Use(name, declared, sum(parts) / len(parts), max(parts), holding / len(parts), parts)


def _declared(limit: LimitModel) -> str:
    if limit.counts is Counts.CONCURRENCY:
        return f"{limit.permits} at once"
    return f"{limit.per_minute:,.10g} {limit.counts.value} a minute, {limit.burst:,.10g} at once"
