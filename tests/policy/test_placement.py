"""Which workers run whose work: tenants, labels, who goes first, and what waits for lack of a worker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.plan import make_plan
from scheduler.policy.types import DemandId, LaneKey, Plan, PoolId, TenantId, WaitReason, WorkerId, WorkerView
from tests.policy.backlog import Backlog
from tests.policy.build import task, wait
from tests.policy.stage import NORMAL

POOL = PoolId(1)
ACME, GLOBEX = TenantId(1), TenantId(2)
GPU = frozenset({"gpu=yes"})


def worker(name: str, free: int, *, tenant: TenantId | None = None, labels: frozenset[str] = frozenset()) -> WorkerView:
    return WorkerView(WorkerId(name), POOL, free, tenant, labels)


def plan_of(backlog: Backlog, *workers: WorkerView, slots: int = 100, reserved: int = 0) -> Plan:
    snapshot = backlog.snapshot(1.0)
    pool = replace(snapshot.pools[POOL], slots=slots, reserved=reserved)
    return make_plan(replace(snapshot, pools={POOL: pool}, workers=workers))


def seats(plan: Plan) -> list[tuple[int, str]]:
    return sorted((int(start.task), str(start.worker)) for start in plan.starts)


def reasons(plan: Plan) -> dict[TenantId, WaitReason]:
    return {hold.lane.tenant: hold.reason for hold in plan.holds}


@pytest.fixture
def backlog() -> Backlog:
    """Three tasks of each of two tenants."""
    made = Backlog()
    made.pool(worker=None)
    wait(made, *(task(n) for n in (1, 2, 3)), tenant=ACME)
    wait(made, *(task(n) for n in (11, 12, 13)), tenant=GLOBEX)
    return made


def with_labels(backlog: Backlog, labels: frozenset[str], *numbers: int, tenant: TenantId = ACME) -> None:
    """Tasks that ask for labels."""
    demand = DemandId(50 + len(backlog.demands))
    backlog.demands[(demand,)] = replace(backlog.demand({}), id=demand, labels=labels)  # type: ignore[index]  # any key of its own
    for number in numbers:
        backlog.add(LaneKey(POOL, NORMAL, tenant, demand), task(number))


def test_a_tenants_worker_runs_that_tenants_work_alone(backlog: Backlog) -> None:
    plan = plan_of(backlog, worker("mine", 5, tenant=ACME))
    assert seats(plan) == [(1, "mine"), (2, "mine"), (3, "mine")]
    assert reasons(plan) == {GLOBEX: WaitReason.NO_MATCHING_WORKER}


def test_ones_own_workers_go_before_those_that_anybody_can_use(backlog: Backlog) -> None:
    plan = plan_of(backlog, worker("all", 3), worker("mine", 2, tenant=ACME))
    assert [name for number, name in seats(plan) if number < 10] == ["mine", "mine", "all"]
    assert len(plan.starts) == 5
    assert set(reasons(plan).values()) == {WaitReason.NO_FREE_SLOT}


def test_a_tenant_whose_workers_are_full_does_not_keep_another_from_its_own(backlog: Backlog) -> None:
    plan = plan_of(backlog, worker("mine", 1, tenant=ACME), worker("theirs", 3, tenant=GLOBEX))
    assert seats(plan) == [(1, "mine"), (11, "theirs"), (12, "theirs"), (13, "theirs")]
    assert reasons(plan) == {ACME: WaitReason.NO_FREE_SLOT}


def test_labels_are_all_needed_and_plain_work_leaves_labelled_workers_for_last(backlog: Backlog) -> None:
    with_labels(backlog, GPU, 21, 22)
    with_labels(backlog, GPU | {"zone=eu"}, 31)
    plan = plan_of(backlog, worker("plain", 6), worker("gpu", 3, labels=GPU))
    assert {number: name for number, name in seats(plan) if number > 20} == {21: "gpu", 22: "gpu"}
    assert {name for number, name in seats(plan) if number < 20} == {"plain"}
    assert [h.reason for h in plan.holds] == [WaitReason.NO_MATCHING_WORKER]


def test_labels_that_no_worker_has_are_told_from_full_pools_and_absent_workers(backlog: Backlog) -> None:
    backlog.lanes.clear()
    with_labels(backlog, GPU, 21)
    assert reasons(plan_of(backlog, worker("plain", 1))) == {ACME: WaitReason.NO_MATCHING_WORKER}
    assert reasons(plan_of(backlog, worker("gpu", 0, labels=GPU))) == {ACME: WaitReason.NO_FREE_SLOT}
    assert reasons(plan_of(backlog, worker("gpu", 1, labels=GPU), slots=0)) == {ACME: WaitReason.NO_FREE_SLOT}
    assert reasons(plan_of(backlog, worker("gpu", 1, labels=GPU), reserved=1)) == {ACME: WaitReason.NO_FREE_SLOT}
    assert reasons(plan_of(backlog)) == {ACME: WaitReason.NO_WORKER}
    assert seats(plan_of(backlog, worker("gpu", 1, labels=GPU))) == [(21, "gpu")]


def test_work_is_spread_over_alike_workers(backlog: Backlog) -> None:
    plan = plan_of(backlog, *(worker(f"w{n}", 2) for n in range(6)))
    assert sorted(name for _, name in seats(plan)) == [f"w{n}" for n in range(6)]
