"""What the leader foresaw last, and how well such forecasts came out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from scheduler.policy.calibration import Band, Outcome, Report, Track, report
from scheduler.policy.crowd import OTHERS
from scheduler.policy.forecast import Curve
from scheduler.policy.types import DemandId, LaneKey, PoolId, PriorityClass, TenantId
from scheduler.store import dispatch, overview
from scheduler.store import forecast as store

WINDOW_S: Final = 3_600.0
LENGTHS_S: Final = (1.0, 10.0, 60.0, inf)
"""Forecasts are told apart by how long a wait they foretold: their errors have little in common."""


@dataclass(frozen=True, slots=True)
class Said:
    """A published forecast. `names` finds a lane by (pool, class, tenant, sorted limits); `pools` is as written."""

    as_of: float
    age_s: float
    lanes: Mapping[LaneKey, Curve]
    others: Mapping[LaneKey, Curve]
    sharing: Mapping[LaneKey, int]
    newcomers: Mapping[tuple[PoolId, PriorityClass], Band]
    tracks: Mapping[tuple[PoolId, PriorityClass], Track]
    names: Mapping[tuple[str, PriorityClass, TenantId, tuple[str, ...]], LaneKey]
    pools: list[dict[str, Any]]

    def at(self, lane: LaneKey, place: int) -> Band | None:
        """When the task at this place of a lane starts, from when it has that place; None: nothing is known."""
        curve = self.lanes.get(lane)
        if curve is not None:
            return curve.at(place)
        crowd = lane._replace(tenant=OTHERS)
        if crowd in self.others:
            return self.others[crowd].at(place * self.sharing.get(crowd, 1))
        return self.of_newcomer(lane.pool, lane.priority) if place == 1 else None

    def of_newcomer(self, pool: PoolId, priority: PriorityClass) -> Band | None:
        """When a task of a tenant that has nothing else there starts."""
        raw = self.newcomers.get((pool, priority))
        return None if raw is None else self.tracks.get((pool, priority), Track()).corrected(raw)


def published_forecast() -> Said | None:
    """The newest forecast; None when there is none or it is too old to be true."""
    return forecast_said(store.load_published())


def forecast_said(found: tuple[dict[str, Any], float] | None) -> Said | None:
    """The same of what was read together with other things (`store.load_published`)."""
    return None if found is None else _said(found[0], max(0.0, found[1]))


def _said(body: Mapping[str, Any], age_s: float) -> Said:
    tracks = {(PoolId(pool), PriorityClass(p)): Track.said(found) for pool, p, found in body["tracks"]}
    pools = {pool["id"]: pool["name"] for pool in body["pools"]}
    names = {}
    for lane in body["lanes"]:
        if lane["pool"] in pools:
            names[pools[lane["pool"]], PriorityClass(lane["class"]), lane["tenant"], tuple(lane["resources"])] = _key(
                lane
            )
    return Said(
        as_of=body["as_of"],
        age_s=age_s,
        lanes={_key(lane): _curve(lane, tracks) for lane in body["lanes"]},
        others={_key(lane): _curve(lane, tracks) for lane in body["others"]},
        sharing={
            LaneKey(PoolId(pool), PriorityClass(p), TenantId(tenant), DemandId(demand)): n
            for pool, p, tenant, demand, n in body["sharing"]
        },
        newcomers={
            (PoolId(pool["id"]), PriorityClass[label.upper()]): Band(_wait(band[0]), _wait(band[1]))
            for pool in body["pools"]
            for label, band in pool["newcomers"].items()
        },
        tracks=tracks,
        names=names,
        pools=body["pools"],
    )


def _key(lane: Mapping[str, Any]) -> LaneKey:
    return LaneKey(
        PoolId(lane["pool"]), PriorityClass(lane["class"]), TenantId(lane["tenant"]), DemandId(lane["demand"])
    )


def _curve(lane: Mapping[str, Any], tracks: Mapping[tuple[PoolId, PriorityClass], Track]) -> Curve:
    points = tuple((place, _wait(p50), _wait(p90)) for place, p50, p90 in lane["points"])
    track = tracks.get((PoolId(lane["pool"]), PriorityClass(lane["class"])), Track())
    return Curve(lane["waiting"], points, track)


def _wait(seconds: float | None) -> float:
    return inf if seconds is None else seconds


@dataclass(frozen=True, slots=True)
class Calibration:
    """How forecasts of the last hour came out: all of them, by pool and class, and by how long a wait they foretold.

    `by_length` has the shortest first, by the seconds that their p50 was at most.
    """

    window_s: float
    overall: Report
    by_seat: Mapping[tuple[str, PriorityClass], Report]
    by_length: Mapping[float, Report]


def calibration(*, window_s: float = WINDOW_S) -> Calibration:
    """Compare the sampled predictions of a window with what happened."""
    return calibrated(store.load_outcomes(window_s), window_s=window_s)


def calibrated(sampled: Sequence[tuple[str, PriorityClass, float, float, float]], *, window_s: float) -> Calibration:
    """The same of predictions that were read together with other things (`store.load_outcomes`)."""
    outcomes = []
    by_seat: dict[tuple[str, PriorityClass], list[Outcome]] = defaultdict(list)
    by_length: dict[float, list[Outcome]] = defaultdict(list)
    for pool, priority, p50_s, p90_s, wait_s in sampled:
        outcome = Outcome(Band(p50_s, p90_s), wait_s)
        outcomes.append(outcome)
        by_seat[pool, priority].append(outcome)
        by_length[next(length for length in LENGTHS_S if p50_s <= length)].append(outcome)
    return Calibration(
        window_s,
        report(outcomes),
        {seat: report(found) for seat, found in sorted(by_seat.items())},
        {length: report(found) for length, found in sorted(by_length.items())},
    )


def oldest_waiting_s() -> dict[tuple[PoolId, PriorityClass], float]:
    """How long the oldest waiting task of each pool and class has waited."""
    now = dispatch.load_now()
    return {seat: max(0.0, now - at) for seat, at in overview.load_oldest_waiting().items()}
