"""The autoscaler around the real planner in virtual time: what a step in arrivals does to waits and to slots."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from scheduler.policy.autoscale import AutoscaleSettings, Decision, LimitUse, PoolLoad, Track, decide_slots
from scheduler.policy.limits import effective_rate
from scheduler.policy.load import Counted, Learned, learn
from scheduler.policy.scale_words import say_decision
from scheduler.policy.types import PoolId, PriorityClass, ResourceId, WorkerId
from tests.policy.stage import HIGH, Stage

POOL = PoolId(1)
SERVICE_S = 0.8
SETTINGS = AutoscaleSettings()


@dataclass
class Scaled:
    """A pool whose slots are decided once a second, from what a database would have counted."""

    stage: Stage
    slots_max: int
    slo_s: dict[PriorityClass, float]
    needs: dict[ResourceId, float] = field(default_factory=dict)
    learned: Learned = field(default_factory=Learned)
    track: Track = field(default_factory=Track)
    slots: list[int] = field(default_factory=list)
    said: list[tuple[str, ...]] = field(default_factory=list)
    last: Decision | None = None

    def submit(self, name: str) -> None:
        self.stage.submit(name, priority=HIGH, runs_s=SERVICE_S, expected_s=SERVICE_S, needs=self.needs)

    def every_second(self, until: float) -> None:
        """Decide now and each second after."""
        stage, backlog = self.stage, self.stage.backlog
        self.learned = learn(self.learned, self._counted(), interval_s=1.0)
        load = PoolLoad(
            now=stage.now,
            slots=backlog.pools[POOL].slots,
            slots_min=0,
            slots_max=self.slots_max,
            service_s=self.learned.service_s(1.0),
            waiting=self._counted().ready,
            arrivals_per_s=self.learned.arrivals_per_s,
            slo_s=self.slo_s,
            limits=tuple(
                LimitUse("openai", amount, 1.0, per_s=effective_rate(backlog.resources[resource]))
                for resource, amount in self.needs.items()
            ),
        )
        self.last = decide_slots(load, SETTINGS, self.track)
        self.track = self.last.track
        self.slots.append(self.last.desired)
        self.said.append(say_decision(load, SETTINGS, self.last))
        backlog.pools[POOL] = replace(backlog.pools[POOL], slots=self.last.desired)
        backlog.workers[WorkerId("w1"), POOL] = self.slots_max
        if stage.now + 1.0 <= until:
            stage.at(stage.now + 1.0, lambda: self.every_second(until))

    def _counted(self) -> Counted:
        stage = self.stage
        ready = Counter({lane.priority: len(tasks) for lane, tasks in stage.backlog.lanes.items()})
        started = Counter(began.start.lane.priority for began in stage.began)
        running = stage.backlog.running
        age_s = sum(stage.now - began.at for began in stage.began if began.start.task in running)
        return Counted(
            stage.now,
            tuple(ready[p] for p in PriorityClass),
            tuple(started[p] for p in PriorityClass),
            len(running),
            age_s,
        )

    def p90_wait_s(self, after: float, before: float) -> float:
        """Of the tasks that became ready in between."""
        waits = sorted(b.waited_s for b in self.stage.began if after <= b.at - b.waited_s < before)
        return waits[int(0.9 * len(waits))]


def step(*, slots_max: int, rate: float | None = None, until: float = 90.0) -> Scaled:
    """A minute at 1/s, then 40/s; `rate` is what the provider gives."""
    stage = Stage()
    stage.backlog.pool(1, slots=2)
    needs = {} if rate is None else {stage.backlog.bucket(1, rate=rate, burst=rate): 1.0}
    scaled = Scaled(stage, slots_max, {HIGH: 2.0}, needs)
    # Not in step with the looks, as no real work is.
    stage.stream("calm", every_s=0.97, until=60.0, submit=scaled.submit)
    stage.at(60.0, lambda: stage.stream("rush", every_s=0.0249, until=until, submit=scaled.submit))
    stage.at(0.0, lambda: scaled.every_second(until))
    stage.run(until)
    return scaled


def test_after_a_step_the_objective_is_met_again_within_twenty_seconds() -> None:
    scaled = step(slots_max=200, rate=60.0)
    assert scaled.slots[59] <= 4
    assert scaled.p90_wait_s(80.0, 88.0) <= 2.0
    # 60/s × 0.8 s = 48 slots are all that the limit feeds.
    assert max(scaled.slots) <= 1.1 * 60.0 * SERVICE_S
    assert max(scaled.slots) >= 40.0 * SERVICE_S


def test_no_slots_are_added_that_the_provider_cannot_feed() -> None:
    scaled = step(slots_max=200, rate=10.0)
    assert max(scaled.slots) == 8
    assert scaled.last is not None
    assert scaled.last.demand > 100
    text = " ".join(scaled.said[-1])
    assert "The limit openai supports only 8 (10/s × 0.8 s ÷ 1 each)" in text


def test_an_idle_pool_falls_to_zero_and_wakes_within_a_second() -> None:
    stage = Stage()
    stage.backlog.pool(1, slots=2)
    scaled = Scaled(stage, 10, {HIGH: 2.0})
    stage.at(0.0, lambda: scaled.submit("early"))
    stage.at(400.3, lambda: scaled.submit("late"))
    stage.at(0.0, lambda: scaled.every_second(410.0))
    stage.run(410.0)
    assert scaled.slots[399] == 0
    assert stage.waits("late")[0] <= 1.0
