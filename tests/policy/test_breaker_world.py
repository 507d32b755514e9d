"""A provider that fails in bursts, in virtual time: one probe at a time, and the breaker always closes again."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from random import Random

import pytest

from scheduler.policy.breaker import Breaker, BreakerState, Call, after_calls, state_of
from scheduler.policy.plan import make_plan
from scheduler.policy.types import LeaseId, ResourceId, TaskId, WaitReason, WorkerId
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait

TASKS = 150
SLOTS = 8
API = ResourceId(1)


class BurstyWorld:
    """Tasks that call one provider, retried until they succeed; a lost lease ends after its time without a word."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.backlog = Backlog()
        pool = self.backlog.pool(slots=SLOTS, worker=None)
        for n in range(3):
            self.backlog.workers[WorkerId(f"engine{n}"), pool] = SLOTS
        self.backlog.bucket(API, rate=self.chance.choice([5.0, 50.0]), burst=20.0)
        self.breaker = Breaker()
        self.leases: dict[LeaseId, tuple[TaskId, float]] = {}
        self.ends: list[tuple[float, LeaseId, bool | None]] = []
        starts = sorted(self.chance.uniform(0.0, 120.0) for _ in range(3))
        self.bursts = [(at, at + self.chance.uniform(5.0, 60.0)) for at in starts]
        self.now, self.last_lease, self.done, self.opened = 0.0, 0, 0, 0
        for n in range(TASKS):
            wait(self.backlog, task(n + 1, ready_at=self.chance.uniform(0.0, 0.5)), needs={API: 1.0})

    def plan(self) -> float | None:
        live = self.breaker.probe in self.leases
        view = replace(self.backlog.resources[API], open_until=self.breaker.open_until, probing=live)
        self.backlog.resources[API] = view
        plan = make_plan(self.backlog.snapshot(self.now))
        state = state_of(self.breaker.open_until, now=self.now)
        allowed = {BreakerState.CLOSED: TASKS, BreakerState.OPEN: 0, BreakerState.HALF_OPEN: int(not live)}[state]
        assert len(plan.starts) <= allowed, f"{len(plan.starts)} calls go through a breaker that is {state}"
        if state is BreakerState.OPEN and self.backlog.waiting() and len(self.leases) < SLOTS:
            assert {hold.reason for hold in plan.holds} == {WaitReason.BREAKER_OPEN}
            assert plan.look_again_at == self.breaker.open_until, "it spins, or sleeps too long"
        self.backlog.carry_out(plan)
        for start in plan.starts:
            self.last_lease += 1
            lease = LeaseId(self.last_lease)
            self.leases[lease] = (start.task, self.now)
            if plan.probes.get(API) == start.task:
                self.breaker = replace(self.breaker, probe=lease)
            took_s, good = self.fate()
            heappush(self.ends, (self.now + took_s, lease, good))
        return plan.look_again_at

    def fate(self) -> tuple[float, bool | None]:
        """How long a call takes, and what it says; one in twenty is lost, throttled or handed back."""
        if self.chance.random() < 0.05:
            return self.chance.choice([0.1, 30.0]), None
        is_down = any(start <= self.now < end for start, end in self.bursts)
        return (self.chance.choice([0.2, 20.0]), False) if is_down else (self.chance.uniform(0.1, 2.0), True)

    def end(self, lease: LeaseId, good: bool | None) -> None:
        number, started_at = self.leases.pop(lease)
        lane = self.backlog.running[number].lane
        self.backlog.end(number)
        before = self.breaker.open_until
        call = Call(lease, good, started_at, self.now - started_at)
        self.breaker = after_calls(self.breaker, [call], now=self.now)
        self.opened += before is None and self.breaker.open_until is not None
        if good:
            self.done += 1
        else:
            self.backlog.add(lane, task(int(number), ready_at=0.0, amounts=(1.0,)))

    def run(self) -> None:
        for _ in range(20_000):
            again = self.plan()
            if self.done == TASKS:
                return
            times = [end[0] for end in self.ends[:1]] + ([] if again is None else [again])
            assert times, "nothing more happens"
            assert min(times) >= self.now
            self.now = max(self.now, min(times))
            while self.ends and self.ends[0][0] <= self.now:
                _, lease, good = heappop(self.ends)
                self.end(lease, good)
        raise AssertionError("it never ends")


@pytest.mark.parametrize("seed", range(40))
def test_one_probe_at_a_time_and_it_always_closes_again(seed: int) -> None:
    world = BurstyWorld(seed)
    world.run()
    assert world.breaker.open_until is None
    assert world.now < 1_200.0


def test_the_bursts_do_open_it() -> None:
    worlds = [BurstyWorld(seed) for seed in range(10)]
    for world in worlds:
        world.run()
    assert sum(world.opened for world in worlds) >= 5
