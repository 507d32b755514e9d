"""Decides how each pool's class stands against the wait it may have: kept, at risk, or missed, and what is the cause.

Pure: the board in, rows out. It must never show a number where the forecast has no basis, nor call a class well that
has a task waiting beyond its target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from scheduler.live import wording
from scheduler.live.board import CLASSES, Board, PoolView, element_id
from scheduler.live.rows import Chip
from scheduler.live.standing import Standing, standing
from scheduler.policy.calibration import Band
from scheduler.policy.chance import chance_within

BEYOND: Final = "over 15 min"
_SURE: Final = 0.95
CHIPS: Final = {
    Standing.MISSED: Chip("cross", "Missed", "bad"),
    Standing.WILL_MISS: Chip("cross", "Will miss", "bad"),
    Standing.AT_RISK: Chip("warn", "At risk", "warn"),
    Standing.PAUSED: Chip("pause", "Paused", "quiet"),
    Standing.UNKNOWN: Chip("idle", "Not enough data", "still"),
    Standing.KEPT: Chip("ok", "On target", "ok"),
    Standing.IDLE: Chip("idle", "No work", "still"),
    Standing.NO_TARGET: Chip("idle", "No target", "still"),
}


@dataclass(frozen=True, slots=True)
class PromiseRow:
    """A pool's class: its state, its target in words, what is foreseen and what is."""

    pool: str
    cls: str
    standing: Standing
    target: str
    wait: str
    oldest: str
    chance: str
    cause: str
    resource: str | None

    @property
    def chip(self) -> Chip:
        """Its state in a symbol, a word and a tone."""
        return CHIPS[self.standing]

    @property
    def row_id(self) -> str:
        """The beginning of the ids of its cells."""
        return element_id(f"slo-{self.cls}", self.pool)

    @property
    def ids(self) -> dict[str, str]:
        """The id of each live cell."""
        return {cell: f"{self.row_id}-{cell}" for cell in ("state", "target", "wait", "oldest", "chance", "cause")}


def promise_rows(board: Board) -> list[PromiseRow]:
    """Every class with a target or with work, worst first, then by pool and urgency."""
    rows = [_row(pool, cls) for pool in board.pools for cls in CLASSES if _shown(pool, cls)]
    return sorted(rows, key=lambda row: (row.standing, row.pool, CLASSES.index(row.cls)))


def _shown(pool: PoolView, cls: str) -> bool:
    return cls in pool.slo or cls in pool.oldest_by_class or cls in (pool.forecast or {})


def _row(pool: PoolView, cls: str) -> PromiseRow:
    target_s, oldest_s = pool.slo.get(cls), pool.oldest_by_class.get(cls)
    stands = standing(pool, cls)
    bound = pool.bound if stands <= Standing.PAUSED else None
    return PromiseRow(
        pool=pool.name,
        cls=cls,
        standing=stands,
        target=wording.duration(target_s) if target_s is not None else wording.NONE,
        wait=foreseen(pool, cls),
        oldest=wording.duration(oldest_s) if oldest_s is not None else "nothing waits",
        chance=_chance(pool, cls),
        cause=bound.text if bound else wording.NONE,
        resource=bound.resource if bound else None,
    )


def foreseen(pool: PoolView, cls: str) -> str:
    """The wait of a task of this class that is submitted now, rounded so that it does not jitter."""
    if pool.forecast is None:
        return "not enough data"
    if cls not in pool.forecast:
        return wording.NONE
    p50_s, p90_s = pool.forecast[cls]
    if p50_s is None:
        return BEYOND
    return f"{wording.glance(p50_s)} to {BEYOND if p90_s is None else wording.glance(p90_s)}"


def _chance(pool: PoolView, cls: str) -> str:
    """How likely a task that is submitted now is to be in time, in steps of 5 % so that it does not jitter."""
    target_s, foretold = pool.slo.get(cls), (pool.forecast or {}).get(cls)
    if target_s is None or foretold is None:
        return wording.NONE
    p50_s, p90_s = (inf if seconds is None else seconds for seconds in foretold)
    chance = chance_within(Band(p50_s, p90_s), target_s)
    if chance >= _SURE:
        return "over 95 %"
    return "under 5 %" if chance < 1 - _SURE else f"{round(chance * 20) * 5} %"


def summary(rows: Sequence[PromiseRow]) -> str:
    """One sentence about all targets."""
    targets = [row for row in rows if row.standing is not Standing.NO_TARGET]
    if not targets:
        return "No pool has a target. Set one as a pool's “slo”: the seconds that a class may wait."
    bad = [f"{row.pool} ({row.cls})" for row in targets if row.standing <= Standing.WILL_MISS]
    risk = [f"{row.pool} ({row.cls})" for row in targets if row.standing is Standing.AT_RISK]
    if bad:
        return f"{wording.plural(len(bad), 'target is', 'targets are')} missed or will be: {wording.name_list(bad)}."
    if risk:
        return f"{wording.plural(len(risk), 'target is', 'targets are')} at risk: {wording.name_list(risk)}."
    known = sum(row.standing in {Standing.KEPT, Standing.IDLE} for row in targets)
    if known == len(targets):
        return f"All {wording.plural(known, 'target')} kept." if known > 1 else "The one target is kept."
    return f"Nothing is known to be at risk: {known} of {wording.plural(len(targets), 'target')} kept."
