"""Fixed starts in a plan: a slot is kept for them, and they take it before everything else."""

from __future__ import annotations

from scheduler.policy.plan import make_plan
from scheduler.policy.types import (
    DemandId,
    DemandView,
    Lane,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    Snapshot,
    TaskId,
    TaskView,
    TenantId,
    TenantView,
    WaitReason,
    WorkerId,
    WorkerView,
)

NOW = 1_000.0
POOL, WORKER, NOTHING, ONE = PoolId(1), WorkerId("w"), DemandId(1), DemandId(2)
API = ResourceId(1)


def lane(
    task: int, priority: PriorityClass, *, tenant: int = 1, fixed: bool = False, demand: DemandId = NOTHING
) -> Lane:
    amounts = (1.0,) if demand == ONE else ()
    view = TaskView(TaskId(task), NOW - 1.0, NOW + 1.0 if fixed else None, 1.0, amounts, fixed=fixed)
    return Lane(LaneKey(POOL, priority, TenantId(tenant), demand), (view,), (view,) if fixed else ())


def started(*lanes: Lane, slots: int = 1, reserved: int = 0, level: float = 1.0, owed: bool = False) -> list[int]:
    snapshot = Snapshot(
        now=NOW,
        pools={POOL: PoolView(POOL, slots, 0, reserved=reserved)},
        tenants={TenantId(n): TenantView(TenantId(n)) for n in (1, 2)},
        resources={API: ResourceView(API, ResourceKind.TOKEN_BUCKET, level, NOW, rate=1.0, burst=10.0)},
        demands={NOTHING: DemandView(NOTHING, ()), ONE: DemandView(ONE, (API,))},
        workers=(WorkerView(WORKER, POOL, slots),),
        lanes=lanes,
        credits={(POOL, PriorityClass.LOW): 3.0} if owed else {},
    )
    plan = make_plan(snapshot)
    if reserved >= slots:
        assert {hold.reason for hold in plan.holds} == {WaitReason.NO_FREE_SLOT}
    return [int(start.task) for start in plan.starts]


CRITICAL, LOW = PriorityClass.CRITICAL, PriorityClass.LOW


def test_kept_slots_are_offered_to_nobody() -> None:
    assert started(lane(1, CRITICAL), lane(2, LOW), slots=2, reserved=1) == [1]
    assert started(lane(1, CRITICAL), slots=1, reserved=1) == []


def test_a_fixed_start_goes_before_a_more_urgent_class_another_tenants_turn_and_what_is_owed() -> None:
    assert started(lane(1, CRITICAL, tenant=2), lane(2, LOW, fixed=True)) == [2]
    assert started(lane(1, LOW, tenant=1), lane(2, LOW, tenant=2, fixed=True)) == [2]
    assert started(lane(1, LOW, tenant=2), lane(2, PriorityClass.NORMAL, fixed=True), owed=True) == [2]


def test_after_it_the_order_is_the_usual_one() -> None:
    assert started(lane(1, CRITICAL, tenant=2), lane(2, LOW, fixed=True), lane(3, LOW, tenant=2), slots=3) == [2, 1, 3]


def test_one_that_lacks_an_amount_keeps_no_slot_from_others() -> None:
    assert started(lane(1, LOW, fixed=True, demand=ONE), lane(2, LOW, tenant=2), level=0.0) == [2]
