"""How far a replay used what it was given: limits, slots, and the quotas of tenants; and which of them held work up.

Pure arithmetic over what became of each request. Times are seconds of the trace, cut into equal bins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor
from typing import Final

from scheduler.replay.settings import Counts, LimitModel, TenantModel
from scheduler.replay.virtual import Fate, Played
from scheduler.replay.world import Work

BINS_MAX: Final = 180
BIN_MIN_S: Final = 1.0
FULL: Final = 0.95
"""A limit that is used so far, while work waits, is what holds the work up."""
QUOTAS_SHOWN: Final = 50

Pairs = Sequence[tuple[Work, Fate]]


@dataclass(frozen=True, slots=True)
class Use:
    """How far a limit, a pool or a quota was used: mean and busiest stretch, as parts of what it admits.

    `holds_up` is the part of the time in which it was used up while work waited.
    """

    name: str
    declared: str
    mean: float
    busiest: float
    holds_up: float
    series: tuple[float, ...]


class Grid:
    """Time cut into equal bins."""

    def __init__(self, took_s: float) -> None:
        self.bin_s = max(BIN_MIN_S, took_s / BINS_MAX)
        self.bins = floor(took_s / self.bin_s) + 1

    def place(self, at: float) -> int:
        """The bin of a moment."""
        return min(self.bins - 1, int(at / self.bin_s))

    def rate(self, times: Iterable[float]) -> tuple[float, ...]:
        """Events per second in each bin."""
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


def uses_of_limits(played: Played, pairs: Pairs, grid: Grid) -> Iterable[Use]:
    """Of each shared limit, by what needs it."""
    for name, limit in played.setup.limits.items():
        needing = [(w, f) for w, f in pairs if name in w.amounts]
        mine, waiting = _started(needing), grid.waiting(needing)
        if limit.counts is Counts.CONCURRENCY:
            yield _use(name, declared_limit(limit), grid.in_use(_stretches(mine)), float(limit.permits), waiting)
        else:
            admits = limit.per_minute / 60.0 * (1.0 - limit.margin)
            taken = [(f.started_s or 0.0, w.amounts[name]) for w, f in mine]
            yield _rated((name, declared_limit(limit)), taken, admits, grid, waiting)


def uses_of_pools(played: Played, pairs: Pairs, grid: Grid) -> Iterable[Use]:
    """Of each pool's slots."""
    for name, pool in played.setup.pools.items():
        mine = [(w, f) for w, f in pairs if w.pool == name]
        used = grid.in_use(_stretches(mine))
        yield _use(name, f"{pool.slots} slots", used, float(pool.slots), grid.waiting(mine))


def uses_of_quotas(played: Played, pairs: Pairs, grid: Grid) -> Iterable[Use]:
    """Of the quotas of tenants that have some and asked for something; at most so many."""
    limited = [(slug, tenant) for slug, tenant in played.setup.tenants.items() if tenant.limited]
    for slug, tenant in limited[:QUOTAS_SHOWN]:
        mine = [(w, f) for w, f in pairs if w.tenant == slug]
        if not mine:
            continue
        waiting = grid.waiting(mine)
        if tenant.start_rate is not None:
            declared = f"{tenant.start_rate:,.10g} starts/s, {tenant.burst:,.10g} at once"
            taken = [(f.started_s or 0.0, 1.0) for _, f in _started(mine)]
            yield _rated((f"{slug}: start rate", declared), taken, tenant.start_rate, grid, waiting)
        if tenant.max_in_flight is not None:
            used = grid.in_use(_stretches(mine))
            declared = f"{tenant.max_in_flight:,} in flight"
            yield _use(f"{slug}: in flight", declared, used, float(tenant.max_in_flight), waiting)


def declared_limit(limit: LimitModel) -> str:
    """A shared limit in words, its ceilings too."""
    if limit.counts is Counts.CONCURRENCY:
        return f"{limit.permits} at once"
    kept = "".join(f", {p.label} leaves {100.0 * part:.3g} %" for p, part in sorted(limit.ceilings.items()) if part)
    return f"{limit.per_minute:,.10g} {limit.counts.value} a minute, {limit.burst:,.10g} at once{kept}"


def declared_tenant(tenant: TenantModel) -> str:
    """A tenant's weight and quotas in words."""
    words = [f"weight {tenant.weight:g}"]
    if tenant.start_rate is not None:
        words.append(f"{tenant.start_rate:,.10g} starts/s, {tenant.burst:,.10g} at once")
    if tenant.max_in_flight is not None:
        words.append(f"{tenant.max_in_flight:,} in flight")
    return ", ".join(words)


def _started(pairs: Pairs) -> Pairs:
    return [(w, f) for w, f in pairs if f.started_s is not None]


def _stretches(pairs: Pairs) -> Iterable[tuple[float, float]]:
    return ((f.started_s, f.ended_s) for _, f in pairs if f.started_s is not None and f.ended_s is not None)


def _rated(
    who: tuple[str, str], taken: Sequence[tuple[float, float]], admits: float, grid: Grid, waiting: Sequence[int]
) -> Use:
    """Of something that gives so much per second; `taken` is when and how much.

    What is left in a bin is used up when one more would not have fitted.
    """
    grain = sum(amount for _, amount in taken) / max(1, len(taken)) / grid.bin_s
    return _use(*who, grid.amounts(taken), admits, waiting, grain=grain)


def _use(
    name: str, declared: str, used: Sequence[float], admits: float, waiting: Sequence[int], *, grain: float = 0.0
) -> Use:
    parts = tuple(each / admits if admits > 0.0 else 0.0 for each in used)
    full = [each + grain >= FULL * admits for each in used]
    holding = sum(so and number > 0 for so, number in zip(full, waiting, strict=True))
    return Use(name, declared, sum(parts) / len(parts), max(parts), holding / len(parts), parts)
