"""A pause with an end, under a running engine: work goes on by itself."""

from __future__ import annotations

from django.db.models.functions import Now

from scheduler.models import Pool
from scheduler.services.pools import pause_pool
from tests.conftest import LiveDatabase
from tests.engine.running import engine, wait_for_state
from tests.support.work import make_pool, make_tenant, state_of, submit_tasks


def test_an_engine_ends_a_pause_when_its_time_has_come(live_database: LiveDatabase) -> None:
    make_pool()
    pause_pool("p", actor="ada", reason="lunch", for_s=3600.0)
    (task,) = submit_tasks(make_tenant())
    with engine({"p": lambda _ctx, payload: payload}):
        assert state_of(task) == "ready"
        Pool.objects.update(resume_at=Now())
        wait_for_state(task, "succeeded")
    assert live_database.name
