"""Decides the geometry of an hour of samples: lines over time, broken where nobody looked, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.live import drawing, wording
from scheduler.reads.history import SPAN_S, LastHour, Sample
from scheduler.web import times

_WIDTH: Final = 600
_HEIGHT: Final = 150
_GAP_S: Final = 90.0
"""Between two samples so far apart nobody looked; no line pretends to know."""
_ROW_S: Final = 300.0

Measure = Callable[[Sample], float | None]
Said = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class HourChart:
    """One measure of the last hour: `lines` are points of polylines."""

    title: str
    lines: list[str]
    top: str
    half: str
    says: str


@dataclass(frozen=True, slots=True)
class HourTable:
    """The highest of each five minutes, newest first; a column for each measure."""

    titles: list[str]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn: its name, where it is in a sample, how it reads, and its top where that is fixed."""

    title: str
    of: Measure
    said: Said
    top: float | None = None


WAITING: Final = Series("Waiting", lambda sample: float(sample.waiting), wording.count)
OLDEST: Final = Series("Oldest waiting", lambda sample: sample.oldest_s or 0.0, wording.duration)
USED: Final = Series(
    "In use", lambda sample: sample.used, lambda part: wording.NONE if part is None else wording.percent(part), top=1.0
)


def hour_charts(hour: LastHour, series: Sequence[Series]) -> list[HourChart]:
    """A chart of each; none while there are too few samples for a line."""
    return [] if len(hour.samples) < 2 else [_chart(hour, each) for each in series]  # noqa: PLR2004 - a line's ends


def hour_table(hour: LastHour, series: Sequence[Series]) -> HourTable:
    """The same in numbers."""
    spans: dict[float, list[Sample]] = {}
    for sample in hour.samples:
        spans.setdefault(sample.at // _ROW_S * _ROW_S, []).append(sample)
    rows = [
        (times.clock(begins), [each.said(_highest(found, each)) for each in series])
        for begins, found in sorted(spans.items(), reverse=True)
    ]
    return HourTable([each.title for each in series], rows)


def _highest(samples: Sequence[Sample], series: Series) -> float:
    return max(series.of(sample) or 0.0 for sample in samples)


def _chart(hour: LastHour, series: Series) -> HourChart:
    highest = _highest(hour.samples, series)
    top = series.top or drawing.nice_top(highest)
    newest = series.of(hour.samples[-1])
    says = f"{series.title} over the last hour: highest {series.said(highest)}, now {series.said(newest)}"
    return HourChart(series.title, _lines(hour, series, top), series.said(top), series.said(top / 2), says)


def _lines(hour: LastHour, series: Series, top: float) -> list[str]:
    lines: list[list[str]] = []
    before = -_GAP_S
    for sample in hour.samples:
        if not lines or sample.at - before > _GAP_S:
            lines.append([])
        before = sample.at
        x = _WIDTH * max(0.0, 1 - (hour.now - sample.at) / SPAN_S)
        y = _HEIGHT - 1 - (_HEIGHT - 2) * min((series.of(sample) or 0.0) / top, 1)
        lines[-1].append(f"{x:.0f},{y:.0f}")
    return [" ".join(points) for points in lines if len(points) > 1]
