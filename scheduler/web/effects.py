"""Says in a sentence and a small table what an edit would do to the waits of the work that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from scheduler.live import wording
from scheduler.policy.calibration import Band
from scheduler.policy.types import PriorityClass
from scheduler.services.preview import Previewed

BEYOND: Final = "over 15 min"
NOTICEABLE_S: Final = 0.5
NOTICEABLE_PART: Final = 0.1
NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class EffectRow:
    """The wait of a task submitted now, without the edit and with it. `word` and `tone` say which is better."""

    pool: str
    cls: str
    before: str
    after: str
    word: str
    tone: str
    icon: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What an edit would do. `unknown` are pools with too few recent starts to say anything about."""

    says: str
    rows: Sequence[EffectRow]
    unknown: Sequence[str]
    as_of: float


def effect_of(found: Previewed) -> Effect:
    """The effect in words. Seats whose pool is gone are left out."""
    names = found.pools
    rows = [
        _row(names[pool], priority, change.before, change.after)
        for (pool, priority), change in found.preview.seats.items()
        if pool in names
    ]
    unknown = sorted(names[pool] for pool in found.preview.unknown if pool in names)
    return Effect(_sentence(rows, unknown), rows, unknown, found.as_of)


def _row(pool: str, priority: PriorityClass, before: Band | None, after: Band | None) -> EffectRow:
    word, tone, icon = _verdict(_p90(before), _p90(after))
    return EffectRow(pool, priority.label, band_text(before), band_text(after), word, tone, icon)


def _verdict(before_s: float, after_s: float) -> tuple[str, str, str]:
    if before_s == after_s or abs(after_s - before_s) <= max(NOTICEABLE_S, NOTICEABLE_PART * before_s):
        return "much the same", "still", "idle"
    return ("shorter", "ok", "ok") if after_s < before_s else ("longer", "warn", "warn")


def band_text(band: Band | None) -> str:
    """A predicted wait: the middle, and what nine in ten stay within."""
    if band is None or band.p50_s == inf:
        return BEYOND
    return f"{wording.duration(band.p50_s)} to {BEYOND if band.p90_s == inf else wording.duration(band.p90_s)}"


def _p90(band: Band | None) -> float:
    return inf if band is None else band.p90_s


def _sentence(rows: Sequence[EffectRow], unknown: Sequence[str]) -> str:
    if not rows:
        if unknown:
            return f"Not enough data: fewer than 20 recent starts in {wording.name_list(list(unknown))}."
        return "Nothing waits and nothing is expected, so no wait would change."
    parts = [
        f"{word} in {wording.name_list([f'{row.pool} ({row.cls})' for row in rows if row.word == word], NAMED_MAX)}"
        for word in ("shorter", "longer")
        if any(row.word == word for row in rows)
    ]
    if not parts:
        return "Waits would stay much the same everywhere."
    rest = " and much the same elsewhere" if any(row.word == "much the same" for row in rows) else ""
    return f"Waits would get {'; '.join(parts)}{rest}."
