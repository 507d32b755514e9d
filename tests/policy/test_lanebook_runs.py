"""Beside many runs a plan looks at a few lanes, and starts what a look at all of them starts, in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from scheduler.policy import lanegroups
from scheduler.policy.lanebook import Arrivals, LaneBook, Look, Read
from scheduler.policy.parking import PARKED_MAX_S
from scheduler.policy.plan import make_plan
from scheduler.policy.types import (
    FairCounter,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    RunId,
    Snapshot,
    TaskId,
    TenantId,
    WaitReason,
)
from tests.policy.build import task
from tests.policy.run_backlog import RunBacklog

NORMAL, LOW = PriorityClass.NORMAL, PriorityClass.LOW
NOW = 1_000.0
LONG_AGO = -1e6
TASKS = 10_000


@pytest.fixture(autouse=True)
def short_sighted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Books look at two lanes at first, so that small worlds have unread ones."""
    monkeypatch.setattr(lanegroups, "REACH_MAX", 4)


class Reader:
    """A planner with a book over a backlog, told of what changes as dispatch tells it."""

    def __init__(self, backlog: RunBacklog) -> None:
        self.backlog = backlog
        self.book = LaneBook()
        self.arrivals: dict[LaneKey, Arrivals] = {}
        self.changed: list[RunId] = []
        self.folded: list[dict[LaneKey, Arrivals]] = []
        self.folds = 0
        self.lanes_read = 0

    def came(self, key: LaneKey) -> None:
        """Something came to this lane."""
        times, last = self.arrivals.get(key, (0, 0))
        self.arrivals = self.arrivals | {key: (times + 1, last + 1)}

    def fold(self, now: float) -> None:
        """The counts are folded: all lanes are read."""
        self.folds += 1
        self.arrivals, self.folded = {}, []
        backlog = self.backlog
        heads = [(key, tasks[0].ready_at) for key, tasks in backlog.lanes.items()]
        counters = {(t.id, p): counter for t in backlog.tenants.values() for p, counter in t.counters.items()}
        self.book.rewrite(heads, counters, backlog.clocks, folds=self.folds, arrivals={}, bases=backlog.bases, now=now)

    def tell(self) -> None:
        """The counts are folded: what they took is told, and no lane is read."""
        self.folds += 1
        self.folded.append(self.arrivals)
        self.arrivals = {}

    def plans(self, now: float) -> Iterator[Plan]:
        """Plan and look again until a plan has come to its end."""
        for _ in range(500):
            snapshot, look = self._seen(now)
            plan = make_plan(snapshot)
            read = Read(
                [lane for lane in snapshot.lanes if not lane.unread],
                snapshot.tenants,
                snapshot.runs,
                snapshot.demands,
                self.backlog.leases(),
            )
            self.backlog.carry_out(plan)
            if look is not None:
                self.book.learn(look, read, plan)
            yield plan
            if not plan.truncated:
                return
        raise AssertionError("it looks again without end")

    def _seen(self, now: float) -> tuple[Snapshot, Look | None]:
        backlog, book = self.backlog, self.book
        came = [key.demand for arrivals in (*self.folded, self.arrivals) for key in arrivals]
        bases = {demand: backlog.bases[demand] for demand in came if demand in backlog.bases}
        new = book.heard(self.folded, bases, now=now)
        self.folded = []
        book.always = [*new, *book.arrived(self.arrivals, bases, now=now)]
        assert book.folds == self.folds
        book.heed(backlog.leases(), self.changed, mark=1)
        self.changed = []
        whole = backlog.snapshot(now)
        look = book.look({pool: view.slots - view.running for pool, view in whole.pools.items()})
        if look is None:
            return replace(whole, lanes=()), None
        self.lanes_read += len(look.keys)
        read = [backlog.window(key, look.width) for key in look.keys if key in backlog.lanes]
        runs = {d.run for d in backlog.demands.values() if d.id in {lane.key.demand for lane in read}}
        return replace(
            whole,
            lanes=(*read, *look.unread),
            tenants={**whole.tenants, **look.strangers},
            runs={run: view for run, view in whole.runs.items() if run in runs},
        ), look


def crowd(chance: Random, *, tenants: int, runs: int, alike: bool) -> RunBacklog:
    """Tenants of distinct counters, who have waited ever since their last start, with runs; `alike`: of one group."""
    backlog = RunBacklog()
    backlog.pool(1, slots=chance.randint(3, 30))
    backlog.pool(2, slots=chance.randint(1, 10))
    backlog.bucket(1, rate=5.0, burst=100.0, level=chance.choice([3.0, 100.0]))
    for number in range(1, tenants + 1):
        tenant = backlog.tenant(number)
        counters = {p: FairCounter(chance.uniform(0.0, 20.0), NOW) for p in (NORMAL, LOW)}
        backlog.tenants[tenant] = replace(backlog.tenants[tenant], counters=counters)
    for run in range(1, runs + 1):
        backlog.widths[RunId(run)] = chance.choice([1, 1, 2])
        for _ in range(chance.randint(1, 4)):
            add_step(backlog, chance, run=run, tenants=tenants, alike=alike)
    # What they have waited for all the while: nothing is there of it, so that nobody was ever idle.
    never = backlog.bucket(2, rate=1e-9, burst=1.0, level=0.0)
    for number in range(1, tenants + 1):
        for pool, priority in product((1, 2), (NORMAL, LOW)):
            lane = LaneKey(PoolId(pool), priority, TenantId(number), backlog.demand({never: 1.0}).id)
            backlog.add(lane, task(100 * number + 10 * pool + priority, ready_at=NOW - 400.0, amounts=(1.0,)))
    return backlog


def add_step(
    backlog: RunBacklog, chance: Random, *, run: int, tenants: int, alike: bool, ready_at: float | None = None
) -> LaneKey:
    """One more step of a run, of its tenant."""
    number = TASKS + len(backlog.running) + backlog.waiting() + chance.randrange(10**9)
    since = NOW - chance.uniform(0.0, 300.0) if ready_at is None else ready_at
    needs = {next(iter(backlog.resources)): 1.0} if chance.random() < 0.4 and not alike else {}
    return backlog.step(
        task(number, ready_at=since, expected_s=chance.uniform(0.5, 3.0)),
        run=run,
        tenant=1 + run % tenants,
        writes=chance.random() < 0.3,
        pool=1 if alike else chance.choice([1, 1, 2]),
        priority=NORMAL if alike else chance.choice([NORMAL, NORMAL, LOW]),
        needs=needs,
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_look_at_a_few_lanes_starts_as_much_and_serves_each_as_well_as_one_at_all(seed: int) -> None:
    """Tenants with the same counter may go in another order, as between any groups of lanes."""
    whole, few = (crowd(Random(seed), tenants=6, runs=60, alike=False) for _ in range(2))
    everything = make_plan(whole.snapshot(NOW))
    whole.carry_out(everything)
    reader = Reader(few)
    reader.fold(NOW)
    started = [start for plan in reader.plans(NOW) for start in plan.starts]
    assert len({start.task for start in started}) == len(started) == len(everything.starts)
    for tenant in whole.tenants:
        served = [
            sum(w.started[s.task].expected_s for s in found if s.lane.tenant == tenant)
            for w, found in ((whole, everything.starts), (few, started))
        ]
        assert abs(served[0] - served[1]) <= 6.0, f"{tenant} is served otherwise"


@pytest.mark.parametrize("seed", range(8))
def test_round_for_round_a_few_lanes_give_the_starts_that_all_of_them_give(seed: int) -> None:
    """Exactly, and in the same order: while steps end, come and are taken back, and runs pause and go on."""
    chance = Random(seed)
    whole, few = (crowd(Random(seed), tenants=6, runs=40, alike=True) for _ in range(2))
    reader = Reader(few)
    reader.fold(NOW)
    for turn in range(20):
        now = NOW + turn
        everything = make_plan(whole.snapshot(now))
        whole.carry_out(everything)
        started = [start.task for plan in reader.plans(now) for start in plan.starts]
        assert started == [start.task for start in everything.starts], f"in round {turn}"
        something_happens(chance, whole, few, reader, now)


def something_happens(chance: Random, whole: RunBacklog, few: RunBacklog, reader: Reader, now: float) -> None:
    """Steps end, come and are taken back, runs pause and go on; in both worlds alike."""
    for number in chance.sample(sorted(whole.running), k=min(len(whole.running), chance.randint(0, 4))):
        for backlog in (whole, few):
            backlog.end(TaskId(number))
    run = RunId(chance.randint(1, 40))
    for backlog in (whole, few):
        backlog.paused.symmetric_difference_update({run})
    reader.changed.append(run)
    seed = chance.random()
    comes_back = chance.randint(1, 40)
    keys = {
        add_step(backlog, Random(seed), run=comes_back, tenants=6, alike=True, ready_at=now - seed / 100.0)
        for backlog in (whole, few)
    }
    for key in keys:
        reader.came(key)
    for _ in range(chance.choice([0, 0, 1, 2])):
        reader.tell()
    if chance.random() < 0.3:
        lane = chance.choice(sorted(key for key in whole.lanes if key.demand in whole.bases))
        gone = whole.lanes[lane][0].id
        for backlog in (whole, few):
            backlog.withdraw(lane, gone)
        reader.fold(now + PARKED_MAX_S)


def test_lanes_that_their_runs_hold_are_not_read_again_until_something_moves() -> None:
    backlog = RunBacklog()
    backlog.pool(1, slots=1_000)
    for run in range(1, 201):
        for n in range(3):
            backlog.step(task(10 * run + n, ready_at=float(n)), run=run, tenant=1 + run % 5)
    reader = Reader(backlog)
    reader.fold(NOW)
    assert sum(len(plan.starts) for plan in reader.plans(NOW)) == 200
    reader.fold(NOW)
    assert reader.book.in_pool[PoolId(1)] == len(reader.book.parking) == 200, "a fold lets nothing be read"
    for turn in range(1, 21):
        reader.lanes_read = 0
        backlog.end(sorted(backlog.running)[turn])
        assert sum(len(plan.starts) for plan in reader.plans(NOW + turn)) == 1
        assert reader.lanes_read <= 2


def test_a_lane_that_waits_for_a_step_that_does_not_run_is_looked_at_when_the_book_is_written_anew() -> None:
    backlog = RunBacklog()
    backlog.pool(1)
    backlog.pools[PoolId(2)] = replace(backlog.pools[backlog.pool(2, slots=0)], slots=0)
    first = backlog.step(task(1, ready_at=1.0), run=1, tenant=1, writes=True, pool=2)
    backlog.step(task(2, ready_at=2.0), run=1, tenant=1, writes=True)
    reader = Reader(backlog)
    reader.fold(NOW)
    assert [len(plan.starts) for plan in reader.plans(NOW)] == [0]
    assert len(reader.book.parking) == 1
    backlog.withdraw(first, TaskId(1))
    reader.fold(NOW + 1.0)
    assert [start.task for plan in reader.plans(NOW + 1.0) for start in plan.starts] == [2]


def test_what_is_in_the_way_is_passed_in_a_few_looks() -> None:
    backlog = RunBacklog()
    backlog.pool(1, slots=5)
    for run in range(1, 301):
        backlog.step(task(run, ready_at=1.0), run=run, tenant=1)
        backlog.paused.add(RunId(run))
    backlog.step(task(999, ready_at=NOW), run=999, tenant=2)
    backlog.tenants[TenantId(2)] = replace(backlog.tenants[TenantId(2)], counters={NORMAL: FairCounter(50.0, LONG_AGO)})
    reader = Reader(backlog)
    reader.fold(NOW)
    plans = list(reader.plans(NOW))
    assert [start.task for plan in plans for start in plan.starts] == [999]
    assert len(plans) <= 12
    assert Counter(hold.reason for plan in plans for hold in plan.holds)[WaitReason.RUN_NOT_ACTIVE] == 300


def test_slots_for_one_tenants_work_alone_show_the_first_of_its_lanes() -> None:
    backlog = RunBacklog()
    backlog.pool(1)
    keys = [backlog.step(task(run, ready_at=float(run)), run=run, tenant=1 + run % 2) for run in range(1, 41)]
    reader = Reader(backlog)
    reader.fold(NOW)
    look = reader.book.look({}, {PoolId(1): {TenantId(2): 1, TenantId(3): 1}})
    assert look is not None
    assert look.keys == keys[0:7:2], "the oldest of its lanes"
    assert [(lane.key.tenant, lane.fifo[0].ready_at) for lane in look.unread] == [(2, 9.0)]
