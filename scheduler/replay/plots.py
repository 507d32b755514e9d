"""Decides the geometry of the report's plots: numbers in, SVG coordinates and labels out. It emits no markup.

A plot is 720 × 240; its field leaves room for the numbers at the axes. Every plot has words for those who do not see it
and a short table of what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from scheduler.replay.summary import Summary
from scheduler.replay.wording import seconds

WIDTH: Final = 720
HEIGHT: Final = 240
LEFT, RIGHT, TOP, BOTTOM = 58, 28, 12, 28
TICKS: Final = 4
ROWS_MAX: Final = 16
LINES_MAX: Final = 6
LEAST_WAIT_S: Final = 0.01
STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Tick:
    """A number at an axis, and where."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `style` picks colour and dashes, so that lines differ without colour too."""

    name: str
    style: int
    points: str


@dataclass(frozen=True, slots=True)
class Plot:
    """All that the template needs."""

    id: str
    title: str
    says: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


Values = Sequence[float]
Named = Sequence[tuple[str, Values]]


def plots(summaries: Sequence[Summary]) -> list[Plot]:
    """The plots of a report: traffic and waits of all settings, then the use of limits of each."""
    shown = summaries[:LINES_MAX]
    first = shown[0]
    traffic = [("arrivals", first.series.arrivals), *((f"starts, {s.name}", s.series.starts) for s in shown)]
    found = [
        over_time("traffic", "Requests per second", _same(traffic, shown), first.series.bin_s, _number),
        over_time("waiting", "Requests that wait", [(s.name, s.series.waiting) for s in shown], _bin(shown), _number),
    ]
    if any(s.wait_curve for s in shown):
        found.append(wait_curves([(s.name, s.wait_curve) for s in shown if s.wait_curve]))
    for n, summary in enumerate(shown):
        uses = [(use.name, use.series) for use in (*summary.limits, *summary.pools, *summary.quotas)][:LINES_MAX]
        title = f"Use of what {summary.name} admits"
        found.append(over_time(f"use-{n}", title, uses, summary.series.bin_s, _percent))
    return found


def _same(named: Named, shown: Sequence[Summary]) -> Named:
    """Series over time have one grid, that of the first settings; those on another are left out."""
    bins = len(shown[0].series.arrivals)
    return [(name, values) for name, values in named if len(values) == bins][:LINES_MAX]


def _bin(shown: Sequence[Summary]) -> float:
    return shown[0].series.bin_s


def over_time(key: str, title: str, named: Named, bin_s: float, write: Callable[[float], str]) -> Plot:
    """Lines over minutes since the first request. Values hold for `bin_s` seconds each."""
    bins = max(len(values) for _, values in named)
    most = max((max(values, default=0.0) for _, values in named), default=0.0)
    marks = nice_marks(most)
    x, y = _scale(0.0, max(1.0, bins * bin_s), LEFT, WIDTH - RIGHT), _scale(0.0, marks[-1], HEIGHT - BOTTOM, TOP)
    lines = tuple(
        Line(name, n, " ".join(f"{x((place + 0.5) * bin_s):.1f},{y(value):.1f}" for place, value in enumerate(values)))
        for n, (name, values) in enumerate(named)
    )
    minutes = nice_marks(bins * bin_s / 60.0)
    stride = max(1, ceil(bins / ROWS_MAX))
    rows = tuple(
        (seconds(place * bin_s), *(write(v[place]) if place < len(v) else "–" for _, v in named))
        for place in range(0, bins, stride)
    )
    peaks = ", ".join(f"{name} at most {write(max(values, default=0.0))}" for name, values in named)
    return Plot(
        key,
        title,
        f"{title} over time: {peaks}.",
        lines,
        tuple(Tick(x(m * 60.0), f"{m:g} min") for m in minutes if m * 60.0 <= bins * bin_s),
        tuple(Tick(y(mark), write(mark)) for mark in marks),
        ("from", *(name for name, _ in named)),
        rows,
    )


def wait_curves(named: Named) -> Plot:
    """For each settings: which part of the requests waited no longer than so much. Waits on a logarithmic axis."""
    most = max(LEAST_WAIT_S * 10, *(values[-1] for _, values in named))
    first, last = floor(log10(LEAST_WAIT_S)), ceil(log10(most))
    x, y = _scale(float(first), float(last), LEFT, WIDTH - RIGHT), _scale(0.0, 100.0, HEIGHT - BOTTOM, TOP)
    lines = tuple(
        Line(name, n, " ".join(f"{x(log10(max(LEAST_WAIT_S, v))):.1f},{y(part):.1f}" for part, v in enumerate(values)))
        for n, (name, values) in enumerate(named)
    )
    parts = (10, 25, 50, 75, 90, 95, 99, 100)
    halves = ", ".join(f"{name} {seconds(values[50])}, 95 % {seconds(values[95])}" for name, values in named)
    return Plot(
        "waits",
        "Part of the requests that waited no longer than",
        f"Waits: half at most {halves}.",
        lines,
        tuple(Tick(x(float(n)), f"{10.0**n:,g} s") for n in range(first, last + 1)),
        tuple(Tick(y(part), f"{part} %") for part in (0, 25, 50, 75, 100)),
        ("part", *(name for name, _ in named)),
        tuple((f"{part} %", *(seconds(values[part]) for _, values in named)) for part in parts),
    )


def nice_marks(most: float) -> list[float]:
    """Round numbers from 0 to at least `most`, about four of them."""
    rough = max(most, 1e-9) / TICKS
    unit = 10.0 ** floor(log10(rough))
    step = next(s * unit for s in STEPS if s * unit >= rough * (1.0 - 1e-9))
    return [n * step for n in range(max(1, ceil(most / step - 1e-9)) + 1)]


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    return lambda value: begin + (value - low) / (high - low) * (end - begin)


def _percent(part: float) -> str:
    return f"{100.0 * part:.0f} %"


def _number(value: float) -> str:
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - three digits
