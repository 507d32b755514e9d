"""Reads what a forecast starts from and keeps what it learned, said and came to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from scheduler.policy.retry import Failure, RetryRule
from scheduler.policy.scene import InFlight
from scheduler.policy.types import (
    DemandId,
    FailureClass,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    TaskId,
    TenantId,
    TenantView,
)
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("forecast.sql")

LEARNED: Final = "learned"
"""What the leader learned is kept under this name,"""
ARRIVALS: Final = "arrivals"
"""how work came lately under this,"""
PUBLISHED: Final = "published"
"""and what it foresaw last under this."""
FRESH_S: Final = 60.0
"""An older forecast is not believed: no engine leads."""

LEASES_MAX: Final = 2_000
ENDED_MAX: Final = 1_000
COUNT_MAX: Final = 5_000
OPEN_MAX: Final = 1_000
OUTCOMES_MAX: Final = 5_000
LOG_KEPT: Final = 20_000
LOG_OPEN_S: Final = 7_200.0
DURATIONS_MAX: Final = 1_000


class Counted(NamedTuple):
    """How many tasks of a lane wait, and how many starts it ever had."""

    ready: int
    started: int


class Begun(NamedTuple):
    """A task that had its first start: when it became ready and when it started."""

    lane: LaneKey
    task: TaskId
    ready_at: float
    started_at: float


@dataclass(frozen=True, slots=True)
class Present:
    """The present as a forecast needs it. `offers` are slots of connected workers by pool."""

    now: float
    pools: dict[PoolId, PoolView]
    names: dict[PoolId, str]
    rules: dict[PoolId, RetryRule]
    offers: dict[PoolId, int]
    in_flight: tuple[InFlight, ...]
    begun: tuple[Begun, ...]
    lanes: dict[LaneKey, Counted]


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that ended; `again`: its task may come back. What the task asked for stands beside it."""

    begun: Begun
    kind: str
    number: int
    took_s: float
    failure: Failure | None
    again: bool
    amounts: tuple[float, ...]
    expected_s: float


class Said(NamedTuple):
    """A prediction for one task: as the runs gave it and as it was published; `wait_s` None: not started yet."""

    lane: LaneKey
    task: TaskId
    ready_at: float
    raw: tuple[float, float]
    published: tuple[float, float]
    wait_s: float | None


def _lane(pool: int, priority: int, tenant: int, demand: int) -> LaneKey:
    return LaneKey(PoolId(pool), PriorityClass(priority), TenantId(tenant), DemandId(demand))


def load_present(*, fresh_s: float) -> Present:
    """Pools, workers seen within `fresh_s`, what runs, and the counts of lanes."""
    row = queries.fetch_one(_SQL["read_present"], {"fresh_s": fresh_s, "leases_max": LEASES_MAX})
    assert row is not None  # noqa: S101 - a SELECT without FROM gives a row
    now, pools, workers, leases, lanes = (row[0], *(_parsed(text) for text in row[1:]))
    offers: dict[PoolId, int] = {PoolId(pool[0]): 0 for pool in pools}
    for offered in workers:
        for pool, slots in offered.items():
            offers[PoolId(int(pool))] = offers.get(PoolId(int(pool)), 0) + int(slots)
    flights = [(_lane(*lease[:4]), lease[4:]) for lease in leases]
    return Present(
        now=now,
        pools={PoolId(p[0]): PoolView(PoolId(p[0]), p[2], 0, paused=p[3]) for p in pools},
        names={PoolId(p[0]): p[1] for p in pools},
        rules={PoolId(p[0]): RetryRule(*p[4:]) for p in pools},
        offers=offers,
        in_flight=tuple(InFlight(lane, tuple(rest[0]), rest[1], rest[1]) for lane, rest in flights),
        begun=tuple(Begun(lane, TaskId(rest[3]), rest[2], rest[1]) for lane, rest in flights if rest[4] == 1),
        lanes={_lane(*lane[:4]): Counted(lane[4], lane[5]) for lane in lanes},
    )


def _parsed(text: str | None) -> list[Any]:
    found: list[Any] = [] if text is None else orjson.loads(text)
    return found


def load_tenants(tenants: Collection[TenantId]) -> dict[TenantId, TenantView]:
    """Weights of tenants and their own limits as used so far, less what runs; a bucket never drawn on is full."""
    rows = queries.fetch(_SQL["read_tenants"], {"tenants": queries.array(tenants)}) if tenants else []
    return {
        TenantId(tenant): TenantView(
            TenantId(tenant),
            weight,
            suspended,
            start_rate=rate,
            start_burst=burst or 1.0,
            start_level=(burst or 1.0) if level is None else level,
            start_level_at=level_at or 0.0,
            max_in_flight=room,
        )
        for tenant, weight, suspended, rate, burst, level, level_at, room in rows
    }


def load_ended(since: float) -> list[Ended]:
    """Attempts that ended after `since`, in Unix seconds; up to a bound, any of them."""
    rows = queries.fetch(_SQL["read_ended"], {"since": since, "rows_max": ENDED_MAX})
    return [_ended(row) for row in rows]


def _ended(row: queries.Row) -> Ended:
    lane, (kind, task, number, ready_at, started_at, finished_at) = _lane(*row[:4]), row[4:10]
    outcome, failure_class, again_s, amounts, expected_s = row[10:]
    failure = None
    if outcome not in ("succeeded", "cancelled", "released"):
        failure = Failure(FailureClass(failure_class) if failure_class else FailureClass.ERROR, "", again_s)
    return Ended(
        begun=Begun(lane, TaskId(task), ready_at, started_at),
        kind=kind,
        number=number,
        took_s=finished_at - started_at,
        failure=failure,
        again=outcome not in ("succeeded", "cancelled"),
        amounts=tuple(amounts),
        expected_s=expected_s,
    )


def load_newest(lanes: Sequence[LaneKey], *, since: float) -> dict[LaneKey, tuple[TaskId, float, int]]:
    """By lane the newest waiting task that became ready after `since`, when, and how many did, itself included."""
    rows = queries.fetch(
        _SQL["read_newest"],
        {
            "pools": queries.array(n.pool for n in lanes),
            "priorities": queries.array(int(n.priority) for n in lanes),
            "tenants": queries.array(n.tenant for n in lanes),
            "demands": queries.array(n.demand for n in lanes),
            "since": since,
            "count_max": COUNT_MAX,
        },
    )
    return {lanes[n - 1]: (TaskId(task), ready_at, count) for n, task, ready_at, count in rows}


def add_log(said: Sequence[Said]) -> None:
    """Keep predictions, to be compared with what will happen."""
    queries.run(
        _SQL["add_log"],
        {
            "pools": queries.array(s.lane.pool for s in said),
            "priorities": queries.array(int(s.lane.priority) for s in said),
            "tasks": queries.array(s.task for s in said),
            "ready_ats": queries.array(s.ready_at for s in said),
            "raw_p50s": queries.array(s.raw[0] for s in said),
            "raw_p90s": queries.array(s.raw[1] for s in said),
            "p50s": queries.array(s.published[0] for s in said),
            "p90s": queries.array(s.published[1] for s in said),
            "waits": queries.array(s.wait_s for s in said),
        },
    )


def resolve_log() -> list[tuple[PoolId, PriorityClass, tuple[float, float], float]]:
    """Complete predictions whose tasks have started: pool, class, what the runs gave, and the wait."""
    rows = queries.fetch(_SQL["resolve_log"], {"rows_max": OPEN_MAX})
    return [(PoolId(pool), PriorityClass(priority), (p50, p90), wait) for pool, priority, p50, p90, wait in rows]


def prune_log() -> int:
    """Forget old predictions; returns how many."""
    return queries.run(_SQL["prune_log"], {"keep": LOG_KEPT, "open_s": LOG_OPEN_S})


@asked
def load_outcomes(window_s: float) -> Question[list[tuple[str, PriorityClass, float, float, float]]]:
    """Completed predictions of the last `window_s`, newest first: pool, class, p50, p90, wait."""
    return Question(
        _SQL["read_outcomes"],
        {"window_s": window_s, "rows_max": OUTCOMES_MAX},
        lambda rows: [(pool, PriorityClass(priority), p50, p90, wait) for pool, priority, p50, p90, wait in rows],
    )


def write_state(name: str, body: Mapping[str, object]) -> None:
    """Keep a part of the forecaster's state under a name."""
    queries.run(_SQL["write_state"], {"name": name, "body": orjson.dumps(body).decode()})


@asked
def load_state(name: str) -> Question[tuple[dict[str, Any], float] | None]:
    """What was kept under a name, and the time now."""
    params = {"name": name}
    return Question(_SQL["read_state"], params, lambda rows: (orjson.loads(rows[0][0]), rows[0][1]) if rows else None)


@asked
def load_published() -> Question[tuple[dict[str, Any], float] | None]:
    """What was foreseen last and how long ago (s, by the database); None when it is missing or old."""

    def fresh(rows: list[queries.Row]) -> tuple[dict[str, Any], float] | None:
        if not rows:
            return None
        body, read_at = orjson.loads(rows[0][0]), rows[0][1]
        age_s = read_at - body["as_of"]
        return None if age_s > FRESH_S else (body, age_s)

    return Question(_SQL["read_state"], {"name": PUBLISHED}, fresh)


def write_durations(rows: Sequence[tuple[PoolId, str, Mapping[str, object], float]]) -> None:
    """Keep what was learned of durations by pool and kind, with their p90."""
    queries.run(
        _SQL["write_durations"],
        {
            "pools": queries.array(pool for pool, _, _, _ in rows),
            "kinds": queries.text_array(kind for _, kind, _, _ in rows),
            "bins": queries.text_array(orjson.dumps(bins).decode() for _, _, bins, _ in rows),
            "p90s": queries.array(p90 for _, _, _, p90 in rows),
        },
    )


@asked
def load_durations() -> Question[list[tuple[PoolId, str, dict[str, Any]]]]:
    """What was learned of durations by pool and kind."""
    params = {"rows_max": DURATIONS_MAX}
    return Question(
        _SQL["read_durations"],
        params,
        lambda rows: [(PoolId(pool), kind, orjson.loads(bins)) for pool, kind, bins in rows],
    )
