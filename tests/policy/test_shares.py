"""Over time every tenant and every class gets its part, and nobody saves it up."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from random import Random

import pytest

from tests.policy.stage import HIGH, LOW, NORMAL, Began, Stage


def crowd(stage: Stage, name: str, tasks: int, *, tenant: int, runs_s: float = 1.0, expected_s: float = 1.0) -> None:
    for _ in range(tasks):
        stage.submit(name, tenant=tenant, runs_s=runs_s, expected_s=expected_s)


def test_a_tenant_with_one_task_waits_at_most_one_turn_over_behind_ten_thousand() -> None:
    stage = Stage(width=20)
    stage.backlog.pool(slots=4)
    crowd(stage, "many", 10_000, tenant=1)
    stage.run(until=10.5)
    crowd(stage, "one", 1, tenant=2)
    stage.run(until=20.0)
    assert stage.waits("one")[0] <= 1.0


def test_ninety_nine_small_tenants_hardly_notice_one_that_submits_ten_thousand() -> None:
    """Their p95 wait stays under twice what it is without the large one."""
    assert p95_of_small_ones(large=10_000) < 2.0 * p95_of_small_ones(large=0)


def p95_of_small_ones(*, large: int) -> float:
    """99 tenants with 10 tasks each, submitted just after `large` of another one, on 50 slots."""
    stage = Stage(width=4)
    stage.backlog.pool(slots=50)
    crowd(stage, "large", large, tenant=1)
    stage.run(until=0.5)
    for tenant in range(2, 101):
        crowd(stage, "small", 10, tenant=tenant)
    stage.run(until=45.0)
    waits = sorted(stage.waits("small"))
    assert len(waits) == 990
    return waits[int(0.95 * len(waits))]


def test_weights_of_three_to_one_give_three_to_one() -> None:
    stage = Stage(width=20)
    stage.backlog.pool(slots=4)
    stage.backlog.tenant(1, weight=3.0)
    stage.backlog.tenant(2, weight=1.0)
    crowd(stage, "three", 1_000, tenant=1)
    crowd(stage, "one", 1_000, tenant=2)
    began = Counter(stage.run(until=200.0))
    assert began["three"] / began["one"] == pytest.approx(3.0, rel=0.05)


def test_equal_tenants_get_equal_parts_over_any_thousand_starts() -> None:
    stage = Stage(width=4)
    stage.backlog.pool(slots=25)
    for tenant in range(1, 101):
        crowd(stage, str(tenant), 25, tenant=tenant)
    names = stage.run(until=80.0)[:2_000]
    for first in (0, 333, 1_000):
        parts = list(Counter(names[first : first + 1_000]).values())
        assert sum(parts) ** 2 / (100 * sum(p * p for p in parts)) >= 0.98


def test_service_of_backlogged_tenants_differs_by_no_more_than_the_virtual_counter_bound() -> None:
    """Two tenants with unequal tasks: weighted service differs by at most the largest task, in either direction."""
    chance, stage = Random(7), Stage(width=20)
    stage.backlog.pool(slots=1)
    sizes = [round(chance.lognormvariate(0.0, 1.0), 3) for _ in range(800)]
    for number, size in enumerate(sizes):
        tenant = 1 + number % 2
        stage.submit(str(tenant), tenant=tenant, runs_s=size, expected_s=size)
    stage.run(until=300.0)
    served = accumulate(_signed(b, sizes) for b in stage.began)
    assert max(map(abs, served)) <= 2 * max(sizes)


def _signed(began: Began, sizes: list[float]) -> float:
    size = sizes[began.start.task - 1]
    return size if began.name == "1" else -size


def test_a_tenant_that_was_idle_banked_no_credit() -> None:
    stage = Stage(width=20)
    stage.backlog.pool(slots=1)
    crowd(stage, "steady", 500, tenant=1)
    crowd(stage, "back", 1, tenant=2)
    stage.run(until=100.5)
    crowd(stage, "back", 100, tenant=2)
    names = stage.run(until=160.5)
    after = Counter(names[-58:])
    assert abs(after["steady"] - after["back"]) <= 2


def test_a_tenant_of_weight_zero_is_served_when_nobody_else_waits() -> None:
    stage = Stage()
    stage.backlog.pool(slots=1)
    stage.backlog.tenant(1, weight=0.0)
    crowd(stage, "zero", 3, tenant=1)
    crowd(stage, "some", 5, tenant=2)
    names = stage.run()
    assert names[-2:] == ["zero", "zero"], "its first start is the price of finding out"


@pytest.mark.parametrize(("name", "share"), [("low", 0.05), ("normal", 0.10)])
def test_a_class_gets_its_share_under_saturating_better_work(name: str, share: float) -> None:
    stage = Stage(width=20)
    stage.backlog.pool(slots=4)
    for _ in range(1_000):
        stage.submit("high", priority=HIGH)
        stage.submit("low", priority=LOW)
        stage.submit("normal", priority=NORMAL)
    names = stage.run(until=200.0)
    for first in range(0, 700, 100):
        assert names[first : first + 100].count(name) >= 100 * share - 1


def test_low_work_gets_its_share_of_a_shared_bucket_too() -> None:
    stage = Stage(width=20)
    stage.backlog.pool(slots=50)
    api = stage.backlog.bucket(1, rate=10.0, burst=10.0, level=0.0)
    for _ in range(500):
        stage.submit("high", priority=HIGH, needs={api: 1.0})
    for _ in range(50):
        stage.submit("low", priority=LOW, needs={api: 1.0})
    names = stage.run(until=40.0)
    assert names[:400].count("low") >= 19


def test_low_work_progresses_under_an_hour_old_normal_backlog() -> None:
    stage = Stage(now=3_600.0, width=20)
    stage.backlog.pool(slots=1)
    for _ in range(300):
        stage.submit("normal", ready_at=0.0)
    stage.submit("low", priority=LOW)
    assert stage.run(until=3_700.0).index("low") <= 21
