"""Eight situations in which schedulers are known to go wrong, in virtual time."""

from __future__ import annotations

from tests.policy.stage import HIGH, LOW, Stage


def test_work_that_needs_nothing_starts_past_work_that_waits_for_an_empty_bucket() -> None:
    stage = Stage()
    stage.backlog.pool(slots=20)
    api = stage.backlog.bucket(1, rate=4.0, burst=4.0, level=0.0)
    for _ in range(6):
        stage.submit("limited", needs={api: 1.0})
    for _ in range(6):
        stage.submit("free")
    stage.run()
    assert stage.times("free") == [0.0] * 6
    assert [round(t, 3) for t in stage.times("limited")] == [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]


def test_priority_holds_across_pools_that_share_a_limit() -> None:
    stage = Stage()
    stage.backlog.pool(1)
    stage.backlog.pool(2)
    api = stage.backlog.bucket(1, rate=4.0, burst=4.0, level=0.0)
    for _ in range(8):
        stage.submit("low", pool=2, priority=LOW, needs={api: 1.0})
    stage.run(until=0.1)
    for _ in range(4):
        stage.submit("high", pool=1, priority=HIGH, needs={api: 1.0})
    assert stage.run() == ["high"] * 4 + ["low"] * 8


def test_a_large_request_is_not_starved_by_a_stream_of_small_ones() -> None:
    stage = Stage()
    stage.backlog.pool(slots=100)
    api = stage.backlog.bucket(1, rate=10.0, burst=10.0, level=0.0)
    stage.stream(
        "small", every_s=1 / 12, until=3.0, submit=lambda name: stage.submit(name, needs={api: 1.0}, runs_s=0.1)
    )
    stage.at(0.5, lambda: stage.submit("large", needs={api: 8.0}, runs_s=0.1))
    stage.run()
    assert stage.waits("large")[0] <= 1.2


def test_a_large_request_of_one_tenant_is_not_starved_by_small_ones_of_another() -> None:
    stage = Stage()
    stage.backlog.pool(slots=100)
    api = stage.backlog.bucket(1, rate=10.0, burst=10.0, level=0.0)
    stage.stream(
        "small",
        every_s=1 / 12,
        until=3.0,
        submit=lambda name: stage.submit(name, tenant=2, needs={api: 1.0}, runs_s=0.1),
    )
    stage.at(0.5, lambda: stage.submit("large", tenant=1, needs={api: 8.0}, runs_s=0.1))
    stage.run()
    assert stage.waits("large")[0] <= 1.2


def test_a_task_that_needs_two_permits_goes_before_younger_ones_that_need_one_of_them() -> None:
    stage = Stage()
    stage.backlog.pool()
    x, y = stage.backlog.semaphore(1, permits=1), stage.backlog.semaphore(2, permits=1)
    stage.submit("x", needs={x: 1.0}, runs_s=1.0)
    stage.run(until=0.1)
    stage.submit("xy", needs={x: 1.0, y: 1.0})
    stage.at(0.2, lambda: stage.submit("y1", needs={y: 1.0}, runs_s=1.0))
    stage.at(0.3, lambda: stage.submit("y2", needs={y: 1.0}))
    assert stage.run() == ["x", "y1", "xy", "y2"]


def test_low_work_keeps_its_share_under_a_saturating_stream_of_high_work() -> None:
    stage = Stage()
    stage.backlog.pool(slots=1)
    for _ in range(200):
        stage.submit("high", priority=HIGH, runs_s=0.02)
    for _ in range(5):
        stage.submit("low", priority=LOW, runs_s=0.02)
    stage.stream("high", every_s=0.01, until=4.0, submit=lambda name: stage.submit(name, priority=HIGH, runs_s=0.02))
    names = stage.run(until=4.0)
    for low in range(1, 6):
        assert names[: 21 * low].count("low") >= low - 1
    assert names.count("low") == 5


def test_a_quiet_tenant_does_not_wait_behind_a_noisy_one() -> None:
    stage = Stage()
    stage.backlog.pool(slots=1)
    for _ in range(200):
        stage.submit("noisy", tenant=1, runs_s=0.1)
    stage.run(until=0.05)
    for _ in range(5):
        stage.submit("quiet", tenant=2, runs_s=0.1)
    names = stage.run()
    assert [place for place, name in enumerate(names) if name == "quiet"] <= [2, 4, 6, 8, 10]
