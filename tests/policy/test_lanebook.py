"""Looking at a few lanes gives the starts that looking at all of them gives, in the same order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from scheduler.policy import lanegroups
from scheduler.policy.lanebook import LaneBook, Look, Read
from scheduler.policy.order import URGENCY_WINDOW_MIN_S
from scheduler.policy.plan import make_plan
from scheduler.policy.types import (
    FairCounter,
    Lane,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    ResourceId,
    Snapshot,
    Start,
    TaskId,
    TaskView,
    TenantId,
)
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait

HIGH, NORMAL, LOW = PriorityClass.HIGH, PriorityClass.NORMAL, PriorityClass.LOW
NOW = 1_000.0


@pytest.fixture(autouse=True)
def short_sighted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Books look at two lanes at first, so that small worlds have unread ones."""
    monkeypatch.setattr(lanegroups, "REACH_MIN", 2)


def written(backlog: Backlog, *, reach: int = 2) -> LaneBook:
    """A book that knows the whole backlog, and looks at `reach` lanes of each group."""
    book = LaneBook()
    counters = {
        (tenant, priority): counter
        for tenant, view in backlog.tenants.items()
        for priority, counter in view.counters.items()
    }
    heads = [(key, tasks[0].ready_at) for key, tasks in backlog.lanes.items()]
    book.rewrite(heads, counters, backlog.clocks, folds=0, arrivals={}, bases={}, now=NOW)
    for group in book._groups.values():
        group.reach = reach
    return book


def seen(backlog: Backlog, book: LaneBook, now: float) -> tuple[Snapshot, Look | None]:
    """What a plan sees that reads only what the book says."""
    whole = backlog.snapshot(now)
    running = {pool: view.running for pool, view in whole.pools.items()}
    book.always = [key for key, tasks in backlog.deadlines.items() if any(presses(each, now) for each in tasks)]
    look = book.look({pool: view.slots - running[pool] for pool, view in whole.pools.items()})
    if look is None:
        return replace(whole, lanes=()), None
    read = {key: backlog.window(key, look.width) for key in look.keys if key in backlog.lanes}
    return replace(whole, lanes=(*read.values(), *look.unread), tenants={**whole.tenants, **look.strangers}), look


def presses(view: TaskView, now: float) -> bool:
    """Whether the deadline of a task puts it before others by now."""
    return view.latest_start is not None and view.latest_start - now < max(URGENCY_WINDOW_MIN_S, view.expected_s)


def as_read(snapshot: Snapshot) -> Read:
    """What was read of what a plan sees."""
    lanes = [lane for lane in snapshot.lanes if not lane.unread]
    return Read(lanes, snapshot.tenants, snapshot.runs, snapshot.demands, {})


def looks(backlog: Backlog, book: LaneBook, now: float = NOW) -> Iterator[tuple[Plan, int]]:
    """Plan and look again until a plan has come to its end; each plan with the number of lanes that it read."""
    for _ in range(200):
        snapshot, look = seen(backlog, book, now)
        plan = make_plan(snapshot)
        backlog.carry_out(plan)
        if look is not None:
            book.learn(look, as_read(snapshot), plan)
        yield plan, 0 if look is None else len(look.keys)
        if not plan.truncated:
            return
    raise AssertionError("it looks again without end")


def crowd(seed: int, *, tenants: int, limited: bool) -> Backlog:
    """Many tenants with a few tasks each in two pools and several classes, some of them served before."""
    chance, backlog = Random(seed), Backlog()
    backlog.pool(1, slots=chance.randint(5, 60))
    backlog.pool(2, slots=chance.randint(0, 20))
    bucket = backlog.bucket(1, rate=10.0, burst=200.0, level=chance.choice([0.0, 5.0, 40.0, 200.0]))
    for priority in (NORMAL, LOW):
        backlog.clocks[priority] = 20.0
    for number in range(1, tenants + 1):
        tenant = backlog.tenant(number, max_in_flight=chance.choice([None, 1]) if limited else None)
        counters = {p: FairCounter(chance.uniform(0.0, 40.0), NOW - chance.uniform(0.0, 50.0)) for p in (NORMAL, LOW)}
        if chance.random() < 0.7:
            backlog.tenants[tenant] = replace(backlog.tenants[tenant], counters=counters)
        for n in range(chance.randint(1, 3)):
            needs = {bucket: chance.choice([1.0, 3.0])} if chance.random() < 0.5 else {}
            age = chance.uniform(0.0, 100.0)
            expected_s = chance.choice([0.5, 1.0, 4.0])
            latest = NOW + chance.uniform(-5.0, 30.0) if chance.random() < 0.05 else None
            wait(
                backlog,
                task(10 * number + n, ready_at=NOW - age, latest_start=latest, expected_s=expected_s),
                pool=chance.choice([1, 1, 2]),
                priority=chance.choice([NORMAL, NORMAL, LOW, HIGH]),
                tenant=number,
                needs=needs,
            )
    return backlog


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_looking_at_a_few_lanes_starts_as_much_and_serves_each_as_well_as_looking_at_all(
    seed: int, limited: bool
) -> None:
    """Equal tenants may go in another order; by service they differ by no more than their largest task."""
    whole, backlog = (crowd(seed, tenants=60, limited=limited) for _ in range(2))
    everything = make_plan(whole.snapshot(NOW))
    started = [start for plan, _ in looks(backlog, written(backlog)) for start in plan.starts]
    assert len({start.task for start in started}) == len(started) == len(everything.starts)
    served = [served_by_seat(whole, everything.starts), served_by_seat(backlog, started)]
    for seat in served[0].keys() | served[1].keys():
        assert abs(served[0][seat] - served[1][seat]) <= 4.0 + 1e-9, f"{seat} is served otherwise"


def served_by_seat(backlog: Backlog, starts: Sequence[Start]) -> dict[tuple[TenantId, PriorityClass], float]:
    """Expected seconds that began, by tenant and class."""
    served: dict[tuple[TenantId, PriorityClass], float] = defaultdict(float)
    waited = {t.id: t for tasks in backlog.lanes.values() for t in tasks} | backlog.started
    for start in starts:
        served[start.lane.tenant, start.lane.priority] += waited[start.task].expected_s
    return served


def test_a_plan_of_one_start_reads_a_few_lanes_of_a_thousand() -> None:
    backlog = Backlog()
    backlog.pool(1, slots=10_000)
    bucket = backlog.bucket(1, rate=1.0, burst=10.0, level=0.0)
    for tenant in range(1, 1_001):
        wait(backlog, task(tenant, ready_at=1.0), tenant=tenant, needs={bucket: 1.0})
    book = written(backlog, reach=8)
    order = []
    for second in range(1, 31):
        backlog.resources[bucket] = replace(backlog.resources[bucket], level=1.0, level_at=float(second))
        for plan, read in looks(backlog, book, float(second)):
            assert read <= 20
            order += [start.lane.tenant for start in plan.starts]
    assert order == list(range(1, 31)), "who waits longest, one after the other"


def test_a_truncated_plan_reaches_further_and_a_complete_one_less_far() -> None:
    backlog = Backlog()
    backlog.pool(1, slots=40)
    for tenant in range(1, 101):
        wait(backlog, task(tenant, ready_at=1.0), tenant=tenant)
    book = written(backlog)
    reads = [read for _, read in looks(backlog, book)]
    assert reads == sorted(reads)
    assert len(reads) <= 6
    assert len(backlog.running) == 40


def test_arrivals_bring_a_lane_back_and_are_counted_once() -> None:
    backlog = Backlog()
    backlog.pool(1)
    key = wait(backlog, task(1, ready_at=1.0))
    book = written(backlog)
    assert [len(plan.starts) for plan, _ in looks(backlog, book)] == [1]
    assert not book.ready_since
    assert book.in_pool[PoolId(1)] == 0
    assert book.look({PoolId(1): 1}) is None
    assert book.arrived({key: (1, 1)}, {}, now=2.0) == [key]
    book.strike(key)
    assert book.arrived({key: (1, 1)}, {}, now=3.0) == [], "what was seen is not new"
    assert book.arrived({key: (1, 2)}, {}, now=3.0) == [key], (
        "as many as before, but others: they were folded in between"
    )
    book.strike(key)
    assert book.arrived({key: (2, 2)}, {}, now=3.0) == [key], "one of a transaction that took longer"
    assert book.arrived({key: (3, 3)}, {}, now=4.0) == [], "it is known already"
    book.strike(LaneKey(PoolId(9), NORMAL, TenantId(9), key.demand))


def test_a_lane_that_goes_on_behind_its_window_stays_in_the_book() -> None:
    backlog = Backlog()
    backlog.pool(1, slots=2)
    key = wait(backlog, *(task(n, ready_at=float(n)) for n in range(1, 9)))
    book = written(backlog)
    snapshot, look = seen(backlog, book, NOW)
    assert look is not None
    plan = make_plan(snapshot)
    narrow = Lane(key, tuple(t for t in backlog.lanes[key] if t.id <= 2), more=True)
    book.learn(look, as_read(replace(snapshot, lanes=(narrow,))), plan)
    assert book.ready_since == {key: 2.0}
    book.learn(look, as_read(replace(snapshot, lanes=())), plan)
    assert not book.ready_since


def test_a_tenant_charged_in_one_lane_is_later_in_its_others() -> None:
    backlog = Backlog()
    backlog.pool(1, slots=1)
    bucket = backlog.bucket(1, rate=1.0, burst=1.0)
    for number, tenant in ((1, 1), (2, 1), (3, 2)):
        wait(backlog, task(number, ready_at=1.0), tenant=tenant, needs={} if number == 1 else {bucket: 1.0})
    book = written(backlog, reach=1)
    order = []
    for n in range(3):
        for plan, _ in looks(backlog, book, NOW + n):
            order += [start.task for start in plan.starts]
        for running in list(backlog.running):
            backlog.end(TaskId(running), took_s=1.0)
    assert order == [1, 3, 2]


def test_pools_without_room_are_not_read() -> None:
    backlog = Backlog()
    backlog.pool(1)
    wait(backlog, task(1))
    book = written(backlog)
    assert book.look({PoolId(2): 5}) is None
    assert book.look({PoolId(1): 0}) is None
    assert ResourceId(1) not in backlog.resources
