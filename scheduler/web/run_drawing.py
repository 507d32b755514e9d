"""Decides how the steps of a run are drawn over time: lanes of bars for all of them, one bar for each that is listed.

Pure. However many steps there are, a drawing is a handful of paths, no taller than `LANES_MAX` lanes. Every bar tells
its kind by shape as well as by colour, and what is drawn is also said in the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from scheduler.policy.states import TaskState
from scheduler.policy.types import Outcome, TaskId
from scheduler.reads.run_pages import AttemptSpan, Span, StepRow

WIDE: Final = 1000
LANES_MAX: Final = 24
LANE: Final = 14
"""Units between the tops of two lanes; a bar is `BAR` of them high."""
BAR: Final = 9
LINKS_MAX: Final = 120
"""More lines than these are not drawn: nobody could follow them."""
_LEAST: Final = 2.0
_TONES: Final = {
    TaskState.SUCCEEDED: "done",
    TaskState.RUNNING: "run",
    TaskState.FAILED: "fail",
    TaskState.DEAD_LETTERED: "fail",
    TaskState.RETRYING: "fail",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """Paths by tone, the marks of writing steps, the lines from a step to those after it.

    `undrawn` steps have not begun; `crowded` says that some lanes hold steps one over another.
    """

    paths: Sequence[tuple[str, str]]
    writes: str
    links: str
    height: int
    lanes: int
    drawn: int
    undrawn: int
    crowded: bool
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Scale:
    """From Unix seconds to units across."""

    begin: float
    end: float

    def x(self, at: float) -> float:
        """Where a moment is, within the field."""
        return WIDE * min(max((at - self.begin) / max(self.end - self.begin, 1e-9), 0.0), 1.0)


def tone_of(state: TaskState) -> str:
    """The class of a step's bar: done, run, fail, or off for one that was stopped."""
    return _TONES.get(state, "off")


def draw(spans: Sequence[Span], links: Iterable[tuple[TaskId, TaskId]], *, now: float) -> Drawing | None:
    """All steps that have begun, each in the first lane that is free; None when none has."""
    begun = sorted((s for s in spans if s.began is not None), key=lambda s: (s.began or 0.0, s.task))
    if not begun:
        return None
    scale = Scale(begun[0].began or 0.0, max(now if s.ended is None else s.ended for s in begun))
    placed = _placed(begun, now)
    bars: dict[str, list[str]] = {}
    writes, at = [], {}
    for span, lane in placed:
        x, width = _extent(scale, span.began or 0.0, now if span.ended is None else span.ended)
        y = lane * LANE
        tone = tone_of(span.state)
        top, tall = (y + BAR // 3, BAR // 3) if tone == "off" else (y, BAR)
        bars.setdefault(tone, []).append(f"M{x:.0f} {top}h{width:.0f}v{tall}h-{width:.0f}z")
        if span.writes:
            writes.append(f"M{x:.0f} {y + BAR + 1}h{width:.0f}v2h-{width:.0f}z")
        at[span.task] = (x, x + width, y + BAR // 2)
    lanes = max(lane for _, lane in placed) + 1
    return Drawing(
        paths=[(tone, "".join(parts)) for tone, parts in sorted(bars.items())],
        writes="".join(writes),
        links=_lines(links, at),
        height=lanes * LANE,
        lanes=lanes,
        drawn=len(begun),
        undrawn=len(spans) - len(begun),
        crowded=lanes == LANES_MAX and any(lane == LANES_MAX - 1 for _, lane in placed[:-1]),
        begin=scale.begin,
        end=scale.end,
    )


def _placed(begun: Sequence[Span], now: float) -> list[tuple[Span, int]]:
    """Each step with its lane: the lowest one that is free when it begins, the last one when none is."""
    busy: list[tuple[float, int]] = []
    free: list[int] = list(range(LANES_MAX))
    placed = []
    for span in begun:
        began = span.began or 0.0
        while busy and busy[0][0] <= began:
            heappush(free, heappop(busy)[1])
        lane = heappop(free) if free else LANES_MAX - 1
        if len(free) + len(busy) < LANES_MAX:
            heappush(busy, (now if span.ended is None else span.ended, lane))
        placed.append((span, lane))
    return placed


def _extent(scale: Scale, began: float, ended: float) -> tuple[float, float]:
    """Where a bar begins and how wide it is: never thinner than can be seen, never off the field."""
    x = min(scale.x(began), WIDE - _LEAST)
    return x, max(scale.x(ended) - x, _LEAST)


def _lines(links: Iterable[tuple[TaskId, TaskId]], at: dict[TaskId, tuple[float, float, int]]) -> str:
    known = [(at[parent], at[child]) for child, parent in links if child in at and parent in at]
    if len(known) > LINKS_MAX:
        return ""
    return "".join(f"M{before[1]:.0f} {before[2]}L{after[0]:.0f} {after[2]}" for before, after in known)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of one step's bar: `name` is its class."""

    name: str
    x: int
    width: int


def parts_of(step: StepRow, attempts: Sequence[AttemptSpan], scale: Scale, *, now: float) -> list[Part]:
    """One step over the run's time: waiting, its attempts, and what runs now."""
    parts = []
    begins = [attempt.began for attempt in attempts]
    first = min(begins, default=step.running_since)
    if step.ready_at is not None and first is not None:
        parts.append(_part("wait", scale, step.ready_at, first))
    parts.extend(
        _part("done" if attempt.outcome is Outcome.SUCCEEDED else "fail", scale, attempt.began, attempt.ended)
        for attempt in attempts
    )
    if step.running_since is not None:
        parts.append(_part("run", scale, step.running_since, now))
    return parts


def _part(name: str, scale: Scale, began: float, ended: float) -> Part:
    x, width = _extent(scale, began, ended)
    return Part(name, round(x), max(round(width), 2))
