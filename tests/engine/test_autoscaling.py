"""A real engine gives a pool the slots that its work needs, takes them back, and wakes a pool that has none."""

from __future__ import annotations

import asyncio
from typing import Any

from scheduler.models import Attempt, Pool, Task
from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.declarations import PoolSettings
from scheduler.reads.scale import pool_scale
from scheduler.services.pools import add_pool
from tests.conftest import LiveDatabase
from tests.engine.running import engine, wait_for_state
from tests.support.waiting import wait_until
from tests.support.work import make_bucket, make_tenant, submit_tasks

# A second of the defaults is a tenth of one here.
TENFOLD = AutoscaleSettings(
    interval_s=0.1, drain_time_s=1.0, stabilization_window_s=0.5, cooldown_s=0.1, step_down_max=4
)
SERVICE_S = 0.1


async def _take_a_while(_ctx: Any, payload: object) -> object:
    await asyncio.sleep(SERVICE_S)
    return payload


def _peak_running() -> int:
    """The most attempts that ran at one time."""
    moments = [
        change
        for began, ended in Attempt.objects.values_list("started_at", "finished_at")
        for change in ((began, 1), (ended, -1))
    ]
    running = peak = 0
    for _, change in sorted(moments):
        running += change
        peak = max(peak, running)
    return peak


def test_slots_follow_the_work_up_to_what_the_limit_feeds(live_database: LiveDatabase) -> None:
    settings = PoolSettings(slots_min=0, slots_max=100, slots=0, duration_default_s=SERVICE_S, autoscale=TENFOLD)
    add_pool("p", "python", settings, actor="test")
    make_bucket("openai", rate=50.0, burst=5.0)
    tenant = make_tenant()
    with engine({"p": _take_a_while}):
        submit_tasks(tenant, 100, resources={"openai": 1.0})
        wait_until(lambda: "openai supports only" in " ".join(pool_scale("p").says), what="the ceiling to bind")
        wait_until(lambda: not Task.objects.exclude(state="succeeded").exists(), what="all tasks to end")
        # 50/s × 0.1 s feed 5 slots; what a start and an end take comes on top, and a busy machine takes its time.
        assert 2 <= _peak_running() <= 25
        wait_until(lambda: Pool.objects.get().slots == 0, what="the pool to give its slots back")
        wait_for_state(submit_tasks(tenant, 1)[0], "succeeded")
    assert live_database.name
