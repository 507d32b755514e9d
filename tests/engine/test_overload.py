"""An engine whose pool cannot keep its objective sheds load by class, degrades, and recovers slowly."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from scheduler.errors import Unavailable
from scheduler.models import Attempt, PoolState, Task
from scheduler.policy.admission import Submission
from scheduler.policy.overload import Pace
from scheduler.policy.types import PriorityClass
from scheduler.services.submit import submit
from scheduler.store.overview import load_latest_snapshot
from tests.engine.running import engine
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.usefixtures("live_database")

HIGH = Submission(payload="{}", pool="p", priority=PriorityClass.HIGH)
LOW = replace(HIGH, priority=PriorityClass.LOW)
PACE = Pace(enter_after_s=0.3, leave_after_s=1.0)


def level() -> int:
    state = PoolState.objects.filter().first()
    return 0 if state is None else state.level


def test_a_pool_over_its_objective_refuses_low_first_and_recovers_with_hysteresis() -> None:
    tenant = make_tenant()
    make_pool("p", slots=1, slo={"high": 0.2}, allow_degraded=True)
    free = threading.Event()
    asked_for_less: list[bool] = []

    def handler(ctx: object, _payload: object) -> None:
        free.wait(30.0)
        asked_for_less.append(bool(getattr(ctx, "degraded", False)))

    submit_tasks(tenant, 3, priority=PriorityClass.HIGH)
    with engine({"p": handler}, pace=PACE):
        wait_until(lambda: level() == 1, what="the first level")
        with pytest.raises(Unavailable, match="no new work of class low"):
            submit(tenant, LOW)
        submit(tenant, replace(HIGH, priority=PriorityClass.NORMAL))
        wait_until(lambda: level() == 3, what="the last level")
        with pytest.raises(Unavailable, match="no new work of class normal"):
            submit(tenant, replace(HIGH, priority=PriorityClass.NORMAL))
        accepted = submit(tenant, HIGH)
        assert (accepted.overload, accepted.degraded) == (3, True)
        picture = load_latest_snapshot()
        assert picture is not None
        shown = picture.body["pools"]
        assert isinstance(shown, list)
        assert shown[0]["overload_level"] >= 2
        free.set()
        wait_until(lambda: not Task.objects.exclude(state="succeeded").exists(), what="the work to be done")
        assert any(asked_for_less), "attempts under overload were to answer only"
        assert Attempt.objects.filter(degraded=True).exists()
        since = PoolState.objects.get().level_since
        wait_until(lambda: level() == 0, what="the pool to recover")
        recovered = PoolState.objects.get().level_since
        assert (recovered - since).total_seconds() >= PACE.leave_after_s, "one level at a time, each after its calm"
        assert submit(tenant, LOW).overload == 0
