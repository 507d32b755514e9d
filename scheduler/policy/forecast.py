"""Foretells waits: runs the planner forward a few times from the present, with imagined durations and arrivals.

Each run starts from what waits, what runs, limits, shares and workers as they are; draws how long attempts take from
what was learned; lets work arrive as some stretch of the last fifteen minutes did; and notes when the k-th task of each
lane starts. The median of the runs is p50, their ninth decile p90, both corrected by their own record (`calibration`).

Cost does not grow with the backlog: tasks far back move in groups (`grain`), a run ends when the last task that waits
now has started, and lanes beyond a number are left to the largest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf, sqrt
from typing import Final

from scheduler.policy.calibration import HORIZON_S, Band, Track
from scheduler.policy.crowd import NEWCOMER, OTHERS, Crowd, condense
from scheduler.policy.forward import Forward
from scheduler.policy.learned import Learned, Seat
from scheduler.policy.retry import Failure
from scheduler.policy.scene import InFlight, Job, Scene, Served, Waiting
from scheduler.policy.types import FailureClass, LaneKey, PoolId

RUNS: Final = 5
COARSE_AFTER: Final = 64
POINTS: Final = 24
SURGE_MAX: Final = 512
SURGES: Final = (0.15, 1.0)
"""Parts of the busiest ten seconds that are tried on top of what waits."""
WAYPOINTS: Final = 8
PROBE: Final = -1
"""Label of a task that only asks when it would start."""
_ERROR: Final = Failure(FailureClass.ERROR, "imagined")

Point = tuple[int, float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """When the tasks of a lane start: points (place, p50, p90), in seconds from the forecast, place 1 being the head.

    Place `waiting` + 1 is that of a task submitted now; those after it are of a surge behind it. As the runs gave it:
    `track` has yet to correct it.
    """

    waiting: int
    points: tuple[Point, ...]
    track: Track

    def raw_at(self, place: int) -> Band:
        """When the task at this place starts, uncorrected; beyond the last point on along the last stretch."""
        points = self.points
        n = bisect_left(points, place, key=lambda p: p[0])
        if n < len(points) and (n == 0 or points[n][0] == place):
            return Band(*points[n][1:])
        if len(points) == 1:
            return Band(*points[0][1:])
        (a, a50, a90), (b, b50, b90) = points[n - 1 : n + 1] if n < len(points) else points[-2:]
        if b50 == inf:
            return Band(inf, inf)
        part = (place - a) / (b - a)
        return Band(a50 + (b50 - a50) * part, a90 + (b90 - a90) * part)

    def at(self, place: int) -> Band:
        """When the task at this place starts."""
        return self.track.corrected(self.raw_at(place))


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was foreseen at `as_of`.

    By lane, for lanes that were followed as one; and for a task submitted now by pool and class: of anyone, corrected,
    and of a newcomer, as the runs gave it.
    """

    as_of: float
    lanes: Mapping[LaneKey, Curve]
    others: Mapping[LaneKey, Curve]
    seats: Mapping[Seat, Band]
    newcomers: Mapping[Seat, Band]
    sharing: Mapping[LaneKey, int] = field(default_factory=dict)

    def raw_wait(self, lane: LaneKey, *, joined: int = 0, now: float) -> Band | None:
        """The wait of a task that is submitted `now`, when `joined` others were since the forecast; None: unknown.

        Uncorrected: `corrected` makes of it what is published.
        """
        curve = self.lanes.get(lane)
        if curve is None:
            return self.newcomers.get((lane.pool, lane.priority))
        raw, gone_s = curve.raw_at(curve.waiting + joined + 1), now - self.as_of
        return Band(max(0.0, raw.p50_s - gone_s), max(0.0, raw.p90_s - gone_s))


def foretell(scene: Scene, learned: Learned, *, draw: Callable[[], float], runs: int = RUNS) -> Forecast:
    """Look ahead from a scene. Pools about which too little is known are left out.

    1. choose the lanes to follow; the others of a class and demand become one;
    2. let a probe stand behind each lane, and a newcomer's behind each class: it asks and takes nothing;
    3. run forward `runs` times, and once more for each part of a surge of arrivals to all lanes, by the first chance;
    4. read off when each place of each lane started and take quantiles.
    """
    crowd = condense(scene, learned)
    lanes = crowd.lanes
    if not lanes:
        return Forecast(scene.now, {}, {}, {}, {})
    ahead = {lane: sum(w.number for w in crowd.scene.waiting.get(lane, ())) for lane in lanes}
    none = dict.fromkeys(lanes, 0)
    chances = [Chance(draw) for _ in range(runs)]
    found = [_look_ahead(learned, crowd, ahead, none, chance) for chance in chances]
    surge = _surge(learned, crowd)
    more = {part: {lane: round(part * number) for lane, number in surge.items()} for part in SURGES}
    surged = [(extra, _look_ahead(learned, crowd, ahead, extra, chances[0])) for extra in more.values()]
    curves = {
        lane: _curve(
            ahead[lane],
            [f[lane] for f in found],
            [(extra[lane], starts[lane]) for extra, starts in surged],
            learned.track(lane.pool, lane.priority),
        )
        for lane in lanes
    }
    return Forecast(
        scene.now,
        {lane: curve for lane, curve in curves.items() if lane.tenant not in (NEWCOMER, OTHERS)},
        {lane: curve for lane, curve in curves.items() if lane.tenant == OTHERS},
        _of_seats(curves, learned),
        {(n.pool, n.priority): c.raw_at(1) for n, c in curves.items() if n.tenant == NEWCOMER},
        crowd.sharing,
    )


class Chance:
    """Numbers to draw that can be drawn again, so that two runs differ by what is different in them."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._arrivals: list[float] = []
        self._rest: list[float] = []

    def streams(self) -> tuple[Callable[[], float], Callable[[], float]]:
        """From the first number on: one stream for arrivals, one for all else."""
        return self._again(self._arrivals), self._again(self._rest)

    def _again(self, tape: list[float]) -> Callable[[], float]:
        place = 0

        def draw() -> float:
            nonlocal place
            if place == len(tape):
                tape.append(self._draw())
            place += 1
            return tape[place - 1]

        return draw


def _surge(learned: Learned, crowd: Crowd) -> dict[LaneKey, int]:
    """How many may come to each lane at once: the busiest ten seconds of the record, by the mean mix of it."""
    came: dict[LaneKey, float] = defaultdict(float)
    for lane, tasks in learned.arrivals.totals().items():
        came[crowd.merged.get(lane, lane)] += tasks
    part = min(SURGE_MAX, learned.arrivals.busiest()) / max(1.0, sum(came.values()))
    return {lane: max(1, round(came[lane] * part)) if lane.tenant != NEWCOMER else 0 for lane in crowd.lanes}


def _with_probes(scene: Scene, learned: Learned, extra: Mapping[LaneKey, int], draw: Callable[[], float]) -> Scene:
    """The scene with so many more tasks at the end of each lane, and a probe behind them."""
    waiting = dict(scene.waiting)
    for lane, number in extra.items():
        amounts, expected_s = learned.arrivals.typical(lane, draw=draw)
        if len(amounts) != len(scene.demands[lane.demand].resources):
            amounts, expected_s = _like_the_others(scene, lane)
        probe = Waiting(scene.now, amounts, expected_s, label=PROBE)
        more = (probe._replace(number=number, label=0),) if number else ()
        waiting[lane] = (*waiting.get(lane, ()), *more, probe)
    return replace(scene, waiting=waiting)


def _like_the_others(scene: Scene, lane: LaneKey) -> tuple[tuple[float, ...], float]:
    for other, places in scene.waiting.items():
        if other.demand == lane.demand and places:
            return places[-1].amounts, places[-1].expected_s
    return (1.0,) * len(scene.demands[lane.demand].resources), 1.0


Starts = list[tuple[int, float]]
"""How many tasks of a lane have started, and when that was reached."""


def _look_ahead(
    learned: Learned, crowd: Crowd, ahead: Mapping[LaneKey, int], extra: Mapping[LaneKey, int], chance: Chance
) -> dict[LaneKey, Starts]:
    """Run forward until what waits in each lane, so many more and a probe have started, or to the horizon."""
    come, draw = chance.streams()
    scene = _with_probes(crowd.scene, learned, extra, draw)
    wanted = {lane: ahead[lane] + number + 1 for lane, number in extra.items()}
    service = _Service(scene, learned, draw)
    flights = tuple(f._replace(ends_at=service.end_of(f, scene.now)) for f in scene.in_flight)
    run = Forward(
        replace(scene, in_flight=flights),
        crowd.followed(learned.arrivals.imagine(scene.now, crowd.known, draw=come)),
        draw=draw,
        serve=service.serve,
        coarse_after=COARSE_AFTER,
    )
    starts: dict[LaneKey, Starts] = {lane: [] for lane in wanted}
    left = dict(wanted)
    read = 0

    def enough() -> bool:
        nonlocal read
        for job in run.started[read:]:
            if job.lane in starts:
                so_far = starts[job.lane][-1][0] if starts[job.lane] else 0
                starts[job.lane].append((so_far + job.count, run.now - scene.now))
                if so_far + job.count >= wanted[job.lane]:
                    left.pop(job.lane, None)
        read = len(run.started)
        return not left

    run.advance(scene.now + HORIZON_S, enough=enough)
    return starts


class _Service:
    """Durations and failures to draw from."""

    def __init__(self, scene: Scene, learned: Learned, draw: Callable[[], float]) -> None:
        self._scene, self._learned, self._draw = scene, learned, draw
        self._by_expected = {pool for pool in learned.durations if learned.expects_well(pool)}
        self._drawings = {
            pool: (learned.multiples[pool] if pool in self._by_expected else durations).drawing()
            for pool, durations in learned.durations.items()
        }

    def end_of(self, flight: InFlight, now: float) -> float:
        """When an attempt may end that has run since its start."""
        durations = self._learned.durations.get(flight.lane.pool)
        took = durations and durations.quantile(self._draw(), longer_than_s=now - flight.started_at)
        return max(now, flight.started_at + (took or 1.0))

    def serve(self, job: Job, _now: float) -> Served:
        """How an attempt may go. The mean of many varies less than one."""
        if job.label == PROBE:
            return Served(0.0, actual=dict.fromkeys(self._scene.demands[job.lane.demand].resources, 0.0))
        pool = job.lane.pool
        drawing = self._drawings.get(pool)
        runs_s = job.runs_s
        if drawing is not None:
            runs_s = drawing.mean_s + (drawing.at(self._draw()) - drawing.mean_s) / sqrt(job.count)
            if pool in self._by_expected:
                runs_s *= job.expected_s / job.count
        return Served(runs_s, self._failure(pool, job.count))

    def _failure(self, pool: PoolId, count: int) -> Failure | None:
        failing = self._learned.failing.get(pool)
        if failing is None or failing.attempts <= 0.0:
            return None
        draw = self._draw() * failing.attempts
        if draw < failing.failed:
            return _ERROR
        often = count * failing.throttled
        if failing.throttled > 0.0 and draw < failing.failed + often:
            closed_s = failing.closed_s / failing.throttled * max(1.0, often / failing.attempts)
            return Failure(FailureClass.THROTTLED, "imagined", closed_s)
        return None


def _curve(ahead: int, runs: list[Starts], surged: list[tuple[int, Starts]], track: Track) -> Curve:
    points: list[Point] = []
    for place in _places(ahead + 1):
        times = sorted(_reached(starts, place) for starts in runs)
        points.append((place, _quantile(times, 0.5), _quantile(times, 0.9)))
    last, p50_s, p90_s = points[-1]
    if p90_s < inf:
        more = _longer(last, _reached(runs[0], last), surged)
        points += [(place, p50_s + more_s, p90_s + more_s) for place, more_s in more]
    return Curve(ahead, tuple(points), track)


def _longer(last: int, base_s: float, surged: list[tuple[int, Starts]]) -> list[tuple[int, float]]:
    """How much later than the last place those behind it start.

    The end of a surge is where so many have come everywhere. On the way there, others' surge is only partly there: a
    place starts no later than in the run in which all of it is, nor than in proportion.
    """
    found = [(last, 0.0)]
    for extra, starts in surged:
        (before, before_s), end, end_s = found[-1], last + extra, _reached(starts, last + extra) - base_s
        if end <= before or not end_s < inf:
            continue
        for place in sorted({before + ceil((end - before) * n / WAYPOINTS) for n in range(1, WAYPOINTS + 1)}):
            line_s = before_s + (end_s - before_s) * (place - before) / (end - before)
            found.append((place, max(found[-1][1], min(line_s, _reached(starts, place) - base_s))))
    return found[1:]


def _places(last: int) -> list[int]:
    """Up to `POINTS` places from 1 to the last, closer at the front."""
    if last <= POINTS:
        return list(range(1, last + 1))
    return sorted({1 + round((last - 1) * (n / (POINTS - 1)) ** 1.5) for n in range(POINTS)})


def _reached(starts: Starts, place: int) -> float:
    """When the task at this place started; between two groups by their distance."""
    n = bisect_left(starts, place, key=lambda s: s[0])
    if n == len(starts):
        return inf
    count, at = starts[n]
    if n == 0 or count == place:
        return at
    before, before_at = starts[n - 1]
    return before_at + (at - before_at) * (place - before) / (count - before)


def _quantile(ordered: list[float], part: float) -> float:
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    if ordered[high] == inf:
        return ordered[low] if place == low else inf
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _of_seats(curves: Mapping[LaneKey, Curve], learned: Learned) -> dict[Seat, Band]:
    """The wait of a task of anyone: quantiles over the lanes by how much comes to each."""
    by_seat: dict[Seat, list[tuple[Band, float]]] = defaultdict(list)
    for lane, curve in curves.items():
        weight = 1e-6 if lane.tenant <= NEWCOMER else learned.arrivals.per_s(lane) + 1e-3
        by_seat[lane.pool, lane.priority].append((curve.at(curve.waiting + 1), weight))
    return {seat: _mixed(bands) for seat, bands in by_seat.items()}


def _mixed(bands: list[tuple[Band, float]]) -> Band:
    """Over lanes: the p50 that half of the tasks have or less, the p90 that nine in ten have or less."""
    return Band(_weighted([(b.p50_s, w) for b, w in bands], 0.5), _weighted([(b.p90_s, w) for b, w in bands], 0.9))


def _weighted(values: list[tuple[float, float]], part: float) -> float:
    left = part * sum(weight for _, weight in values)
    for value, weight in sorted(values):
        left -= weight
        if left <= 0.0:
            return value
    return max(value for value, _ in values)
