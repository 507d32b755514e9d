"""Decides at which moments a cron expression runs in a time zone. Pure: the zone is an argument, and so is the time.

An expression names wall-clock times; a zone maps them to moments, and where its clocks change the map has gaps and
repetitions. The rule, by what the expression says:

- **Fixed times** (neither its minute nor its hour begins with `*`, as `30 2 * * *`): each wall-clock time once. One
  that the clocks jump over runs at the moment of the jump; one that comes twice runs the first time.
- **Intervals** (`*/10 * * * *`, `0 * * * *`): every moment whose wall clock matches. What the clocks jump over does not
  run, what comes twice runs twice, so that the interval stays what it says.

Runs strictly ascend: two wall-clock times that fall on one moment are one run. `cronsim` parses the expression and
walks its wall-clock times; it never sees a zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile
from math import ceil, floor
from typing import Final

from cronsim import CronSim, CronSimError
from cronsim.cronsim import FIELD_NAMES, Field

EXPRESSION_CHARS_MAX: Final = 200
_FIELDS: Final = (5, 6)
_NEVER: Final = "This expression never comes true."
_MAY_BE: Final = {
    Field.SECOND: "0 to 59",
    Field.MINUTE: "0 to 59",
    Field.HOUR: "0 to 23",
    Field.DAY: "1 to 31 or L for the last",
    Field.MONTH: "1 to 12 or JAN to DEC",
    Field.DOW: "0 to 7 (both are Sunday) or SUN to SAT",
}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall-clock times have no zone here
_STEP: Final = timedelta(hours=12)
"""A zone changes its clocks at most once in so long."""


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression that is known to be one."""

    text: str

    @property
    def names_fixed_times(self) -> bool:
        """Whether it names times of the day, rather than an interval."""
        minute, hour = self.text.split()[-5:-3]
        return not minute.startswith("*") and not hour.startswith("*")


def parse(text: str) -> Cron | str:
    """The expression, or in words what is wrong with it."""
    if len(text) > EXPRESSION_CHARS_MAX or not text.isascii():
        return f"An expression has at most {EXPRESSION_CHARS_MAX} plain characters."
    fields = text.split()
    if len(fields) not in _FIELDS:
        return f"An expression has 5 fields, or 6 with seconds first; this one has {len(fields)}."
    try:
        walk = CronSim(text, _EPOCH)
    except CronSimError:
        return _fault(fields)
    if next(walk, None) is None:
        return _NEVER
    return Cron(" ".join(fields))


def _fault(fields: list[str]) -> str:
    """Which part is wrong, and what may stand there. Where each part by itself is right, no month has such a day."""
    for field, text in zip(list(Field)[-len(fields) :], fields, strict=True):
        try:
            field.parse(text.upper())
        except CronSimError:
            return (
                f"{text!r} is no {FIELD_NAMES[field]}. Write {_MAY_BE[field]}, a range as 1-5, a list as 1,3, "
                "a step as */5, or * for each."
            )
    return _NEVER


def runs(cron: Cron, zone: tzinfo, *, after: float) -> Iterator[float]:
    """The moments, in Unix seconds, strictly after `after`. Ascending without end, unless the expression ends."""
    moments = _fixed(cron, zone, after) if cron.names_fixed_times else _at_intervals(cron, zone, after)
    last = after
    for moment in moments:
        if moment > last:
            last = moment
            yield moment


def next_run(cron: Cron, zone: tzinfo, *, after: float) -> float | None:
    """The first moment strictly after `after`."""
    return next(runs(cron, zone, after=after), None)


def newest_runs(cron: Cron, zone: tzinfo, *, since: float, until: float, count_max: int) -> tuple[list[float], bool]:
    """The newest runs in [since, until], ascending, at most `count_max`, and whether earlier ones were left out.

    `since` is a run itself, or long before any. Looks back in growing steps, so that a year of seconds costs no more
    than the runs that are wanted.
    """
    span_s = 60.0
    while True:
        start = until - span_s
        found = list(takewhile(lambda run: run <= until, runs(cron, zone, after=max(start, since - 1.0))))
        if len(found) > count_max or start <= since - 1.0:
            return found[-count_max:], len(found) > count_max
        span_s *= 4.0 if not found else max(2.0, 1.5 * count_max / len(found))


def utc_offset_s(zone: tzinfo, moment: float) -> float:
    """How far the zone's wall clock is ahead of UTC at a moment, in seconds."""
    return _offset(zone, datetime.fromtimestamp(moment, UTC)).total_seconds()


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _wall_times(cron: Cron, after: datetime) -> Iterator[datetime]:
    """Wall-clock times of the expression strictly after `after`, ascending, as if no clock ever changed."""
    yield from CronSim(cron.text, after)


def _fixed(cron: Cron, zone: tzinfo, after: float) -> Iterator[float]:
    """Each wall-clock time once. Begins two days early: what was jumped over then may run after `after`."""
    begin = datetime.fromtimestamp(after, UTC).astimezone(zone).replace(tzinfo=None) - timedelta(days=2)
    for wall in _wall_times(cron, begin):
        yield _moment(wall, zone)


def _moment(wall: datetime, zone: tzinfo) -> float:
    """When the zone's clocks show a time first; for one that they jump over, when they jump."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment.timestamp()
    return _change(zone, moment - _STEP, moment + _STEP).timestamp()


def _at_intervals(cron: Cron, zone: tzinfo, after: float) -> Iterator[float]:
    """Every moment whose wall clock matches: within a stretch of one offset, wall clock and time go together."""
    begin = datetime.fromtimestamp(after, UTC)
    offset = _offset(zone, begin)
    walk_from = (begin + offset).replace(tzinfo=None)
    while True:
        for wall in _wall_times(cron, walk_from):
            moment = (wall - offset).replace(tzinfo=UTC)
            changed = _first_change(zone, begin, moment)
            if changed is not None:
                break
            yield moment.timestamp()
            begin = moment
        else:
            return
        begin, offset = changed, _offset(zone, changed)
        # The moment of the change shows the new time, and may be one that matches.
        walk_from = (changed + offset).replace(tzinfo=None) - timedelta(seconds=1)


def _first_change(zone: tzinfo, start: datetime, end: datetime) -> datetime | None:
    """The first moment in (start, end] at which the zone's offset is another, or None."""
    offset = _offset(zone, start)
    low = start
    while low < end:
        high = min(low + _STEP, end)
        if _offset(zone, high) != offset:
            return _change(zone, low, high)
        low = high
    return None


def _change(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """The moment in (low, high] at which the zone's offset changes, to the second."""
    offset = _offset(zone, low)
    before, after = floor(low.timestamp()), ceil(high.timestamp())
    while after - before > 1:
        middle = (before + after) // 2
        if _offset(zone, datetime.fromtimestamp(middle, UTC)) == offset:
            before = middle
        else:
            after = middle
    return datetime.fromtimestamp(after, UTC)
