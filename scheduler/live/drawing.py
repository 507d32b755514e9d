"""Decides the geometry of sparklines, bars and charts: numbers in, SVG coordinates out. It must never emit markup.

Bars are drawn on a field 1000 wide and lines on a field 120 × 28 or 600 × 150 that the stylesheet stretches, because a
strict content security policy forbids style attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BAR_WIDTH: Final = 1000
SPARK_POINTS: Final = 30
_NOTHING: Final = 1e-9
SLOW_EVERY: Final = 5  # history moves once per this many snapshots, so that frames stay small


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one polyline, and the same points closed to the base line for an area."""

    points: str
    area: str


@dataclass(frozen=True, slots=True)
class Spark:
    """A line, when there is enough history for one, and what it says in words."""

    line: Line | None
    says: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a bar, in thousandths of its width."""

    name: str
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines by name under one `top` value, and the same data as rows of a table."""

    top: float
    lines: dict[str, Line]
    rows: list[tuple[str, list[float]]]


def settled(samples: Sequence[float], seq: int) -> tuple[float, ...]:
    """The part of a history that stays the same for `SLOW_EVERY` snapshots in a row."""
    late = seq % SLOW_EVERY
    kept = samples[: len(samples) - late] if late else samples
    return tuple(kept[-(60 - SLOW_EVERY) :])


def spark(samples: Sequence[float], unit: str) -> Spark:
    """A sparkline of at most `SPARK_POINTS` points over a 120 × 28 field, with its text alternative."""
    if len(samples) < 2:  # noqa: PLR2004 - a line needs two points
        return Spark(None, f"{unit}: no history yet")
    thin = _thin(samples, SPARK_POINTS)
    top = max(max(thin) * 1.15, 1e-9)
    says = f"{unit}, last minute: lowest {min(samples):.4g}, highest {max(samples):.4g}, latest {samples[-1]:.4g}"
    return Spark(_line(thin, top, width=120, height=28, pad=2), says)


def _thin(samples: Sequence[float], points_max: int) -> list[float]:
    if len(samples) <= points_max:
        return list(samples)
    step = len(samples) / points_max
    return [_mean(samples[int(i * step) : max(int((i + 1) * step), int(i * step) + 1)]) for i in range(points_max)]


def _mean(samples: Sequence[float]) -> float:
    return sum(samples) / len(samples)


def _line(samples: Sequence[float], top: float, *, width: int, height: int, pad: int) -> Line:
    step = width / (len(samples) - 1)
    tall = height - 2 * pad
    points = " ".join(
        f"{index * step:.0f},{height - pad - tall * min(value / top, 1):.0f}" for index, value in enumerate(samples)
    )
    return Line(points=points, area=f"0,{height} {points} {width},{height}")


def segments(parts: Sequence[tuple[str, float]], whole: float) -> list[Segment]:
    """Parts of a whole side by side; a part above zero is never thinner than a visible sliver."""
    drawn: list[Segment] = []
    x = 0
    for name, value in parts:
        if value <= 0 or whole <= 0:
            continue
        width = min(max(round(BAR_WIDTH * min(value / whole, 1.0)), 8), BAR_WIDTH - x)
        drawn.append(Segment(name, x, width))
        x += width
    return drawn


def chart(series: Mapping[str, Sequence[float]], interval_s: float) -> Chart | None:
    """Lines of several series over one scale, and the same data as rows of means per ten seconds, newest first."""
    length = min((len(samples) for samples in series.values()), default=0)
    if length < 2:  # noqa: PLR2004 - a line needs two points
        return None
    level = {name: list(samples[-length:]) for name, samples in series.items()}
    top = nice_top(max(max(samples) for samples in level.values()))
    lines = {name: _line(samples, top, width=600, height=150, pad=1) for name, samples in level.items()}
    return Chart(top, lines, _rows(level, length, interval_s))


def _rows(level: dict[str, list[float]], length: int, interval_s: float) -> list[tuple[str, list[float]]]:
    bucket = max(round(10 / interval_s), 1)
    rows = []
    for end in range(length, 0, -bucket):
        start = max(end - bucket, 0)
        ago_from, ago_to = round((length - end) * interval_s), round((length - start) * interval_s)
        rows.append((f"{ago_from} to {ago_to} s ago", [_mean(samples[start:end]) for samples in level.values()]))
    return rows


def nice_top(highest: float) -> float:
    """The next round number at or above the highest value; 1 when everything is zero, or as good as zero."""
    if highest < _NOTHING:
        return 1.0
    scale = 1.0
    while scale > highest:
        scale /= 10
    while scale * 10 < highest:
        scale *= 10
    return next(scale * step for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if scale * step >= highest)
