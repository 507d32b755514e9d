"""Virtual time: the runner does what planning at every event would do, and follows the rules of settlement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from scheduler.policy.forward import Forward
from scheduler.policy.order import OrderPolicy
from scheduler.policy.queues import WIDTH
from scheduler.policy.retry import Failure, RetryRule
from scheduler.policy.scene import Arrival, InFlight, Job, Scene, Served, Waiting
from scheduler.policy.states import TaskState
from scheduler.policy.types import (
    DemandId,
    DemandView,
    FailureClass,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    TenantId,
    TenantView,
)

POOL = PoolId(1)
BUCKET, PERMITS = ResourceId(1), ResourceId(2)
NORMAL, HIGH = PriorityClass.NORMAL, PriorityClass.HIGH
NOTHING, RATED, HELD = DemandId(1), DemandId(2), DemandId(3)


def lane(
    *, tenant: int = 1, priority: PriorityClass = NORMAL, demand: DemandId = NOTHING, pool: PoolId = POOL
) -> LaneKey:
    return LaneKey(pool, priority, TenantId(tenant), demand)


def scene(*, slots: int = 2, rate: float = 1.0, burst: float = 1.0, permits: int = 1) -> Scene:
    bucket = ResourceView(BUCKET, ResourceKind.TOKEN_BUCKET, burst, 0.0, rate, burst)
    semaphore = ResourceView(PERMITS, ResourceKind.SEMAPHORE, float(permits), 0.0, permits=permits)
    return Scene(
        now=0.0,
        pools={POOL: PoolView(POOL, slots, 0), PoolId(2): PoolView(PoolId(2), slots, 0)},
        tenants={TenantId(n): TenantView(TenantId(n)) for n in range(1, 4)},
        resources={BUCKET: bucket, PERMITS: semaphore},
        demands={
            NOTHING: DemandView(NOTHING, ()),
            RATED: DemandView(RATED, (BUCKET,)),
            HELD: DemandView(HELD, (PERMITS,)),
        },
    )


def run(world: Scene, arrivals: list[Arrival], seed: int = 1) -> Forward:
    forward = Forward(world, arrivals, draw=Random(seed).random)
    forward.advance()
    return forward


def starts(forward: Forward) -> list[tuple[int, float | None]]:
    return [(job.label, job.started_at) for job in forward.started]


def test_work_waits_for_a_slot_and_in_order() -> None:
    forward = run(scene(slots=1), [Arrival(0.0, lane(), runs_s=2.0, label=n) for n in range(3)])
    assert starts(forward) == [(0, 0.0), (1, 2.0), (2, 4.0)]
    assert [job.ended_at for job in forward.ended] == [2.0, 4.0, 6.0]
    assert [job.wait_s for job in forward.started] == [0.0, 2.0, 4.0]


def test_work_waits_for_a_rate() -> None:
    forward = run(scene(slots=9), [Arrival(0.0, lane(demand=RATED), (1.0,), 0.1, label=n) for n in range(3)])
    assert [at for _, at in starts(forward)] == pytest.approx([0.0, 1.0, 2.0])


def test_permits_come_back_with_the_end_of_an_attempt() -> None:
    forward = run(scene(slots=9), [Arrival(0.0, lane(demand=HELD), (1.0,), 3.0, label=n) for n in range(2)])
    assert starts(forward) == [(0, 0.0), (1, 3.0)]


def test_what_waits_and_what_runs_already_is_in_the_scene() -> None:
    world = replace(
        scene(slots=1),
        waiting={lane(): (Waiting(-5.0, expected_s=2.0, number=2),)},
        in_flight=(InFlight(lane(), (), -1.0, 4.0),),
    )
    forward = run(world, [])
    assert [job.started_at for job in forward.started] == [4.0, 6.0]
    assert [job.wait_s for job in forward.started] == [9.0, 11.0]


def test_a_job_that_has_not_started_has_no_wait() -> None:
    forward = Forward(replace(scene(slots=0), waiting={lane(): (Waiting(0.0),)}), draw=Random(1).random)
    forward.advance(10.0)
    assert [job.wait_s for job in forward.waiting[lane()]] == [None]
    assert forward.now == 10.0


def test_workers_that_are_not_there_run_nothing() -> None:
    world = replace(scene(slots=4), offers={POOL: 1})
    forward = run(world, [Arrival(0.0, lane(), runs_s=1.0, label=n) for n in range(2)])
    assert starts(forward) == [(0, 0.0), (1, 1.0)]


def test_a_paused_pool_starts_nothing() -> None:
    world = scene()
    paused = replace(world, pools={**world.pools, POOL: PoolView(POOL, 2, 0, paused=True)})
    forward = run(paused, [Arrival(0.0, lane(), label=1), Arrival(0.0, lane(pool=PoolId(2)), label=2)])
    assert starts(forward) == [(2, 0.0)]


def test_a_failed_attempt_is_tried_again_by_the_pools_rule_and_keeps_its_place() -> None:
    world = replace(scene(slots=1), retry={POOL: RetryRule(max_attempts=2, initial_s=1.0, jitter=False)})
    error = Failure(FailureClass.ERROR, "no")

    def serve(job: Job, _now: float) -> Served:
        return Served(1.0, error if job.label == 0 else None)

    arrivals = [Arrival(0.0, lane(), label=n) for n in range(4)]
    forward = Forward(world, arrivals, draw=Random(1).random, serve=serve)
    forward.advance()
    assert [(job.label, job.state, job.ended_at) for job in forward.ended] == [
        (1, TaskState.SUCCEEDED, 2.0),
        (0, TaskState.DEAD_LETTERED, 3.0),
        (2, TaskState.SUCCEEDED, 4.0),
        (3, TaskState.SUCCEEDED, 5.0),
    ]
    assert len(forward.started) == 4, "a second attempt is not another first start"


def test_a_throttled_answer_closes_the_limit() -> None:
    throttled = Failure(FailureClass.THROTTLED, "slow down", 5.0)

    def serve(job: Job, now: float) -> Served:
        return Served(0.5, throttled if now < 1.0 and job.label == 0 else None)

    arrivals = [Arrival(0.0, lane(demand=RATED), (1.0,), label=n) for n in range(2)]
    forward = Forward(scene(), arrivals, draw=lambda: 0.0, serve=serve)
    forward.advance()
    assert [(job.label, job.attempts) for job in forward.ended] == [(0, 2), (1, 1)]
    assert [job.ended_at for job in forward.ended] == pytest.approx([6.0, 7.0])


def test_a_throttled_answer_leaves_permits_alone() -> None:
    def serve(job: Job, now: float) -> Served:
        return Served(0.5, Failure(FailureClass.THROTTLED, "slow down") if now < 0.5 else None)

    forward = Forward(scene(), [Arrival(0.0, lane(demand=HELD), (1.0,))], draw=lambda: 0.0, serve=serve)
    forward.advance()
    assert forward.ended[0].ended_at == pytest.approx(1.0)


def test_measured_amounts_correct_the_level() -> None:
    def serve(job: Job, _now: float) -> Served:
        return Served(1.0, actual={BUCKET: 1.0 if job.label == 0 else 5.0})

    arrivals = [Arrival(0.0, lane(demand=RATED), (5.0,), label=n) for n in range(3)]
    forward = Forward(scene(slots=9, burst=5.0), arrivals, draw=Random(1).random, serve=serve)
    forward.advance()
    assert [at for _, at in starts(forward)] == pytest.approx([0.0, 1.0, 6.0])


def test_a_more_urgent_class_goes_first_and_a_deadline_passes_in_its_lane() -> None:
    arrivals = [
        *(Arrival(0.0, lane(), label=n) for n in range(3)),
        Arrival(0.5, lane(), latest_start=0.9, label=10),
        Arrival(0.5, lane(priority=HIGH), label=20),
    ]
    forward = run(scene(slots=1), arrivals)
    assert [label for label, _ in starts(forward)] == [0, 10, 20, 1, 2]


def test_a_tenants_own_limits_hold_in_virtual_time() -> None:
    capped = TenantView(TenantId(1), start_rate=2.0, start_burst=1.0, start_level=1.0)
    narrow = TenantView(TenantId(2), max_in_flight=1)
    world = scene(slots=9)
    arrivals = [Arrival(0.0, lane(tenant=t), runs_s=3.0, label=t) for t in (1, 1, 1, 2, 2)]
    forward = run(replace(world, tenants={**world.tenants, capped.id: capped, narrow.id: narrow}), arrivals)
    assert sorted(label for label, _ in starts(forward)) == [1, 1, 1, 2, 2]
    assert sorted(at or 0.0 for _, at in starts(forward)) == pytest.approx([0.0, 0.0, 0.5, 1.0, 3.0])


@pytest.mark.parametrize("limits", [{"start_rate": 5.0, "start_burst": 5.0}, {"max_in_flight": 5}])
def test_a_tenants_own_limits_hold_where_tasks_move_in_groups(limits: dict[str, float]) -> None:
    limited = replace(TenantView(TenantId(1)), **limits)  # type: ignore[arg-type]  # the names are those of the view
    world = scene(slots=40)
    waiting = {lane(): (Waiting(-1.0, number=1_000),)}
    forward = Forward(
        replace(world, tenants={TenantId(1): limited}, waiting=waiting), draw=Random(1).random, coarse_after=32
    )
    forward.advance()
    assert forward.now == pytest.approx(200.0, rel=0.15)


def test_it_can_be_stopped_looked_at_and_run_on_from_what_was_seen() -> None:
    arrivals = [Arrival(0.0, lane(demand=RATED), (1.0,), 1.5, label=n) for n in range(6)]
    first = Forward(scene(slots=2), arrivals, draw=Random(1).random)
    first.advance(2.5)
    seen = first.scene()
    assert len(seen.in_flight) == 1
    assert len(seen.waiting[lane(demand=RATED)]) == 3
    second = Forward(seen, draw=Random(1).random)
    second.advance()
    first.advance()
    assert [j.started_at for j in second.started] == pytest.approx([j.started_at for j in first.started[3:]])


def test_it_stops_when_it_is_enough() -> None:
    forward = Forward(scene(slots=1), [Arrival(float(n), lane()) for n in range(9)], draw=Random(1).random)
    forward.advance(enough=lambda: len(forward.started) == 2)
    assert forward.now == 1.0


def test_more_than_a_window_starts_at_once() -> None:
    forward = run(scene(slots=99), [Arrival(0.0, lane(), label=n) for n in range(3 * WIDTH)])
    assert {at for _, at in starts(forward)} == {0.0}


def test_an_arrival_behind_others_costs_no_plan() -> None:
    arrivals = [Arrival(n / 1000, lane(demand=RATED), (1.0,), 0.1, label=n) for n in range(100)]
    forward = run(scene(slots=99, rate=10.0), arrivals)
    assert forward.plans <= 2 * 100


class Eager(Forward):
    """The same, but it plans whenever anything at all happens."""

    def _wait(self, job: Job) -> None:
        super()._wait(job)
        self._changed = True

    def _settle(self, job: Job, served: Served) -> None:
        super()._settle(job, served)
        self._changed = True


def mixed(rng: Random) -> Iterator[Arrival]:
    at = 0.0
    for label in range(120):
        at += rng.expovariate(3.0)
        demand = rng.choice([NOTHING, RATED, HELD])
        amounts = () if demand == NOTHING else (1.0,) if demand == HELD else (rng.choice([0.5, 1.0, 3.0]),)
        key = lane(tenant=rng.randint(1, 3), priority=rng.choice(list(PriorityClass)), demand=demand)
        yield Arrival(at, key, amounts, rng.uniform(0.1, 3.0), rng.choice([0.5, 2.0]), label=label)


@pytest.mark.parametrize("seed", range(20))
def test_it_starts_what_planning_at_every_event_would_start(seed: int) -> None:
    rng = Random(seed)
    world = scene(slots=rng.randint(1, 6), rate=rng.choice([1.0, 3.0]), burst=3.0, permits=rng.randint(1, 3))
    arrivals = list(mixed(rng))
    limited = TenantView(TenantId(1), start_rate=rng.choice([0.5, 2.0]), max_in_flight=rng.choice([None, 1, 3]))
    world = replace(world, tenants={**world.tenants, limited.id: limited} if seed % 2 else world.tenants)

    def serve(job: Job, _now: float) -> Served:
        return Served(job.runs_s, Failure(FailureClass.ERROR, "no") if job.label % 7 == job.attempts else None)

    # What is set aside for a class is so from the plan that first sees the need: that alone depends on when one looks.
    order = OrderPolicy(shares=(0.0, 0.0, 0.0, 0.0))
    lazy = Forward(world, arrivals, draw=Random(seed).random, serve=serve, order=order)
    eager = Eager(world, arrivals, draw=Random(seed).random, serve=serve, order=order)
    lazy.advance()
    eager.advance()
    assert [label for label, _ in starts(lazy)] == [label for label, _ in starts(eager)]
    assert [job.wait_s for job in lazy.started] == pytest.approx([job.wait_s for job in eager.started])
    assert lazy.plans <= eager.plans
    assert len(lazy.ended) == len(arrivals)
