"""Foretells waits, once a second or as its cost allows; the leader does it for all, never a request.

What it learns and says is in rows, so that web processes read it and a new leader goes on with it. Of arrivals those
to the busiest lanes are kept: a new leader, and a preview, imagine how work may go on to come.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from django.db import transaction

from scheduler.policy.arrivals import ArrivalRecord
from scheduler.policy.calibration import Band
from scheduler.policy.durations import Durations
from scheduler.policy.forecast import Curve, Forecast, foretell
from scheduler.policy.learned import Ended, Learned
from scheduler.policy.scene import Scene, Waiting
from scheduler.policy.types import WORKER_FRESH_S, LaneKey, PoolId, PriorityClass, TaskId
from scheduler.store import dispatch as dispatch_store
from scheduler.store import forecast as store
from scheduler.store import resources as resource_store
from scheduler.store.asking import Together

LANES_READ_MAX: Final = 32
TASKS_READ_MAX: Final = 2_048
CPU_SHARE: Final = 0.08
"""Of one processor, for looking ahead: what took a tenth of a second is done again after more than one."""
AMOUNTS_NOTED_MAX: Final = 100
SAVED_EVERY_ROUNDS: Final = 10
_CHANCE: Final = random.SystemRandom()


@dataclass(slots=True)
class Memory:
    """What the leader remembers between rounds."""

    learned: Learned
    kinds: dict[tuple[PoolId, str], Durations]
    since: float
    counts: dict[LaneKey, store.Counted] = field(default_factory=dict)
    forecast: Forecast | None = None
    joined: Counter[LaneKey] = field(default_factory=Counter)
    next_at: float = 0.0
    rounds: int = 0


Look = Callable[[Scene, Learned], tuple[Forecast, float]]
"""Looks ahead from a scene; with the seconds of processor time that it took."""


def look_here(scene: Scene, learned: Learned) -> tuple[Forecast, float]:
    """Look ahead in this thread."""
    began = time.thread_time()
    forecast = foretell(scene, learned, draw=_CHANCE.random)
    return forecast, time.thread_time() - began


def renew_forecast(memory: Memory | None, *, look: Look = look_here) -> Memory:
    """One round; returns what to remember for the next. What `look` raises is raised, and nothing is forgotten.

    1. read the present, and what has ended since the last round;
    2. log what was said to some of those that came since;
    3. learn, and compare what was said with what happened;
    4. when it is due, look ahead and publish.
    """
    with transaction.atomic():
        present = store.load_present(fresh_s=WORKER_FRESH_S)
        memory = recall() if memory is None else memory
        ended = store.load_ended(memory.since)
        if memory.forecast is not None:
            _log(memory, memory.forecast, present, ended)
        _learn(memory, present, ended)
        _check(memory)
        memory.since = present.now
        scene = _scene(memory, present) if time.monotonic() >= memory.next_at else None
        memory.rounds += 1
        if memory.rounds % SAVED_EVERY_ROUNDS == 0:
            _save(memory)
    if scene is not None:
        memory.forecast, took_s = look(scene, memory.learned)
        memory.joined.clear()
        memory.next_at = time.monotonic() + took_s / CPU_SHARE
        store.write_state(store.PUBLISHED, _published(memory, memory.forecast, present, scene))
    return memory


def load_scene(memory: Memory) -> Scene:
    """The present, for a caller that wants to see what a change of it would come to."""
    with transaction.atomic(savepoint=False):
        return _scene(memory, store.load_present(fresh_s=WORKER_FRESH_S))


def recall() -> Memory:
    """What the leader has learned and saved."""
    asking = Together()
    now = asking.add(dispatch_store.load_now.question())
    kept = asking.add(store.load_state.question(store.LEARNED))
    came = asking.add(store.load_state.question(store.ARRIVALS))
    durations = asking.add(store.load_durations.question())
    learned = Learned() if kept.value is None else Learned.from_json(kept.value[0])
    if came.value is not None:
        learned.arrivals = ArrivalRecord.from_json(came.value[0])
    kinds = {(pool, kind): Durations.from_json(bins) for pool, kind, bins in durations.value}
    return Memory(learned, kinds, now.value)


# Learning


def _learn(memory: Memory, present: store.Present, ended: list[store.Ended]) -> None:
    again: Counter[LaneKey] = Counter(e.begun.lane for e in ended if e.again)
    for lane, counted in present.lanes.items():
        before = memory.counts.get(
            lane, store.Counted(0, counted.started - counted.ready) if memory.counts else counted
        )
        came = counted.ready - before.ready + counted.started - before.started - again[lane]
        if came > 0:
            memory.learned.arrivals.note(lane, came)
            memory.joined[lane] += came
    memory.counts = present.lanes
    memory.learned.arrivals.turn(present.now)
    attempts: dict[PoolId, list[Ended]] = defaultdict(list)
    took: dict[tuple[PoolId, str], list[float]] = defaultdict(list)
    for e in ended:
        attempts[e.begun.lane.pool].append(Ended(e.took_s, e.expected_s, e.failure))
        if e.failure is None:
            took[e.begun.lane.pool, e.kind].append(e.took_s)
    for pool, known in attempts.items():
        memory.learned.learn(pool, known, now=present.now)
    for seat, durations in took.items():
        memory.kinds.setdefault(seat, Durations(at=present.now)).learn(durations, now=present.now)
    for e in ended[:AMOUNTS_NOTED_MAX]:
        memory.learned.arrivals.note_amounts(e.begun.lane, e.amounts, e.expected_s)


def _check(memory: Memory) -> None:
    for pool, priority, raw, wait_s in store.resolve_log():
        memory.learned.track(pool, priority).learn(Band(*raw), wait_s)


def _save(memory: Memory) -> None:
    store.prune_log()
    store.write_state(store.LEARNED, memory.learned.as_json())
    store.write_state(store.ARRIVALS, memory.learned.arrivals.as_json())
    rows = [(pool, kind, d.as_json(), d.quantile(0.9)) for (pool, kind), d in memory.kinds.items()]
    if rows:
        store.write_durations([(pool, kind, bins, p90) for pool, kind, bins, p90 in rows if p90 is not None])


# Comparing


def _log(memory: Memory, forecast: Forecast, present: store.Present, ended: list[store.Ended]) -> None:
    """Of each lane that is followed, note one of the tasks that came since: what its submitter was told, as it were."""
    since = memory.since
    started: dict[LaneKey, list[store.Begun]] = defaultdict(list)
    for begun in (*present.begun, *(e.begun for e in ended if e.number == 1)):
        if begun.ready_at > since and begun.lane in forecast.lanes:
            started[begun.lane].append(begun)
    waiting = store.load_newest(list(forecast.lanes), since=since)
    said: list[store.Said] = []
    for lane in {*started, *waiting}:
        begun_of_lane = sorted(started[lane], key=lambda b: b.ready_at)
        newest = waiting.get(lane)
        pick = _CHANCE.randrange(len(begun_of_lane) + (0 if newest is None else newest[2]))
        task, ready_at, wait_s, ahead = _picked(begun_of_lane, newest, pick)
        raw = forecast.raw_wait(lane, joined=memory.joined[lane] + ahead, now=ready_at)
        if raw is None or raw.p90_s == inf:
            continue
        track = memory.learned.track(lane.pool, lane.priority)
        said.append(store.Said(lane, task, ready_at, raw, track.corrected(raw), wait_s))
        if wait_s is not None:
            track.learn(raw, wait_s)
    if said:
        store.add_log(said)


def _picked(
    begun: list[store.Begun], newest: tuple[TaskId, float, int] | None, pick: int
) -> tuple[TaskId, float, float | None, int]:
    """One of those that have started, or the newest that waits: id, ready time, wait if known, how many came before."""
    if newest is None or pick < len(begun):
        chosen = begun[pick]
        return chosen.task, chosen.ready_at, max(0.0, chosen.started_at - chosen.ready_at), pick
    task, ready_at, came = newest
    return task, ready_at, None, len(begun) + came - 1


# Looking ahead


def _scene(memory: Memory, present: store.Present) -> Scene:
    """What waits, by lane: the front of the largest task by task, the rest by their number."""
    waiting_lanes = sorted((n for n, c in present.lanes.items() if c.ready > 0), key=lambda n: -present.lanes[n].ready)
    read = waiting_lanes[:LANES_READ_MAX]
    demands = {lane.demand for lane in waiting_lanes} | {lane.demand for lane in memory.learned.arrivals.amounts}
    width = max(1, TASKS_READ_MAX // max(1, len(read)))
    front = dispatch_store.load_field(read, width=width, demands=demands)
    waiting: dict[LaneKey, tuple[Waiting, ...]] = {}
    for lane in front.lanes:
        places = [Waiting(t.ready_at, t.amounts, t.expected_s, t.latest_start) for t in lane.fifo]
        for place in places[-8:]:
            memory.learned.arrivals.note_amounts(lane.key, place.amounts, place.expected_s)
        waiting[lane.key] = (*places, *_behind(places, present.lanes[lane.key].ready - len(places), lane.more))
    for key in waiting_lanes[LANES_READ_MAX:]:
        amounts, expected_s = memory.learned.arrivals.typical(key, draw=_CHANCE.random)
        needs = front.demands.get(key.demand)
        if needs is not None and len(amounts) == len(needs.resources):
            waiting[key] = (Waiting(present.now, amounts, expected_s, number=present.lanes[key].ready),)
    running = {entry.lane for entry in present.in_flight}
    others = {key.tenant for key in {*waiting, *running, *memory.learned.arrivals.amounts}} - {*front.tenants}
    return Scene(
        now=present.now,
        pools=present.pools,
        tenants={**store.load_tenants(others), **front.tenants},
        resources={row.view.id: row.view for row in resource_store.load()},
        demands={**front.demands},
        offers=present.offers,
        waiting=waiting,
        in_flight=tuple(f for f in present.in_flight if not f.amounts or f.lane.demand in front.demands),
        clocks=front.clocks,
        credits=front.credits,
        retry=present.rules,
    )


def _behind(places: list[Waiting], number: int, more: bool) -> list[Waiting]:  # noqa: FBT001 - a lane's own word
    """What stands behind the front, alike: each asks for the mean of those in front."""
    if not more or number <= 0 or not places:
        return []
    count = len(places)
    amounts = tuple(sum(column) / count for column in zip(*(p.amounts for p in places), strict=True))
    return [Waiting(places[-1].ready_at, amounts, sum(p.expected_s for p in places) / count, number=number)]


# Publishing


def _published(memory: Memory, forecast: Forecast, present: store.Present, scene: Scene) -> dict[str, Any]:
    names = {row.view.id: row.name for row in resource_store.load()}

    def lane_body(lane: LaneKey, curve: Curve) -> dict[str, Any]:
        return {
            "pool": lane.pool,
            "class": int(lane.priority),
            "tenant": lane.tenant,
            "demand": lane.demand,
            "resources": sorted(names[r] for r in scene.demands[lane.demand].resources if r in names),
            "waiting": curve.waiting,
            "points": [[place, _number(p50), _number(p90)] for place, p50, p90 in curve.points],
        }

    return {
        "as_of": forecast.as_of,
        "pools": [_pool_body(memory, forecast, pool, name) for pool, name in present.names.items()],
        "lanes": [lane_body(lane, curve) for lane, curve in forecast.lanes.items()],
        "others": [lane_body(lane, curve) for lane, curve in forecast.others.items()],
        "sharing": [[*key, n] for key, n in forecast.sharing.items()],
        "tracks": [
            [pool, int(p), [[round(figure, 4) for figure in c] for c in t.concluded()]]
            for (pool, p), t in memory.learned.tracks.items()
        ],
    }


def _pool_body(memory: Memory, forecast: Forecast, pool: PoolId, name: str) -> dict[str, Any]:
    return {
        "id": pool,
        "name": name,
        "enough": memory.learned.is_enough(pool),
        "classes": {p.label: band_body(forecast.seats[pool, p]) for p in PriorityClass if (pool, p) in forecast.seats},
        "newcomers": {
            p.label: [_number(s) for s in forecast.newcomers[pool, p]]
            for p in PriorityClass
            if (pool, p) in forecast.newcomers
        },
    }


def band_body(band: Band) -> Mapping[str, float | None]:
    """A band in JSON: null for what lies beyond the horizon."""
    return {"p50_s": _number(band.p50_s), "p90_s": _number(band.p90_s)}


def _number(seconds: float) -> float | None:
    return None if seconds == inf else round(seconds, 3)
