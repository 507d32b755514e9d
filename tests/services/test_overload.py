"""What an overload level is judged by."""

from __future__ import annotations

import pytest

from scheduler.models import Pool, PoolState
from scheduler.policy.overload import Pace
from scheduler.policy.types import PoolId, PriorityClass
from scheduler.services.overload import Queue, judge_pools, waits_s
from tests.support.work import make_pool

CRITICAL, HIGH, NORMAL, LOW = PriorityClass
PACE = Pace()


def test_a_class_waits_for_what_is_more_urgent_too_unless_a_forecast_knows_better() -> None:
    queue = Queue({HIGH: 10, LOW: 40}, {HIGH: 0.5, LOW: 3.0}, 5.0, {LOW: 90.0})
    assert waits_s(queue, started_per_s=5.0) == {CRITICAL: 0.0, HIGH: 2.0, NORMAL: 2.0, LOW: 90.0}


def judge(pool: PoolId, wait_s: float, now: float) -> int:
    queue = Queue({HIGH: 1}, {HIGH: wait_s}, 0.0)
    return judge_pools({pool: queue}, pace=PACE, now=now)[pool].overload.level


@pytest.mark.django_db
def test_levels_are_kept_frozen_while_paused_and_gone_with_the_objectives() -> None:
    pool = make_pool(slo={"high": 1.0}, allow_degraded=True)
    now = 1_000_000.0
    levels = [judge(pool, 5.0, now + second) for second in range(12)]
    assert levels == [0] * 5 + [1] * 5 + [2] * 2
    state = PoolState.objects.get()
    assert (state.level, state.degrades, state.predicted_s) == (2, True, 5.0)
    Pool.objects.update(paused_at="2026-01-01T00:00:00Z")
    assert judge(pool, 500.0, now + 13.0) == 2
    Pool.objects.update(paused_at=None, slo=None)
    assert judge(pool, 500.0, now + 14.0) == 0
    assert not PoolState.objects.get().degrades
