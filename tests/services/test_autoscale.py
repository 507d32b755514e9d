"""Autoscaled pools follow their work: counted in the database, decided once per interval, told sparingly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from scheduler.errors import NotFound, Refused
from scheduler.models import AuditEvent, Pool, PoolScale
from scheduler.policy.autoscale import AutoscaleSettings
from scheduler.policy.declarations import PoolSettings
from scheduler.policy.types import PoolId
from scheduler.reads.scale import pool_scale
from scheduler.reads.snapshot import latest_snapshot
from scheduler.services.autoscale import autoscale
from scheduler.services.pools import add_pool, edit_pool
from scheduler.services.resources import edit_resource
from scheduler.services.snapshot import take_snapshot
from tests.support.work import HandWorker, make_bucket, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db

QUICK = {"interval_s": 0.1, "cooldown_s": 0.0, "stabilization_window_s": 0.1}


def make_scaled(executor: str = "python", **settings: Any) -> None:
    config = AutoscaleSettings(**settings.pop("autoscale", {}))
    declared = PoolSettings(slots_min=0, slots_max=40, slots=2, autoscale=config)
    add_pool("p", executor, replace(declared, **settings), actor="ada")


def slots() -> int:
    return Pool.objects.get(name="p").slots


def let_time_pass(seconds: float) -> None:
    """Make the last look so much older."""
    for row in PoolScale.objects.all():
        memory = row.memory
        assert memory is not None
        memory["learned"]["counted"][0] -= seconds
        if memory["told"] is not None:
            memory["told"]["at"] -= seconds
        row.memory = memory
        row.save()


def test_a_backlog_gets_slots_and_says_why() -> None:
    make_scaled()
    submit_tasks(make_tenant(), 300)
    assert autoscale() is True
    assert slots() == 6
    assert autoscale() is False, "one decision per interval"
    let_time_pass(1.0)
    assert autoscale() is True
    assert slots() == 10
    found = pool_scale("p")
    assert found.desired == 10
    assert found.says == ("10 = 300 waiting × 1 s each ÷ 30 s to clear them.", "From 6 to 10 now.")


def test_slots_for_fixed_starts_ahead_are_there_before_them() -> None:
    make_scaled(slots=8)
    tenant = make_tenant()
    soon = {"start_in_s": 30.0, "tolerance_s": 1.0, "duration_hint_s": 10.0}
    submit_tasks(tenant, 3, **soon)
    submit_tasks(tenant, 2, **{**soon, "start_in_s": 45.0})
    submit_tasks(tenant, 4, **{**soon, "start_in_s": 600.0})  # beyond what the pool looks ahead
    submit_tasks(tenant, 5, start_in_s=30.0)  # a delay is no promise
    autoscale()
    found = pool_scale("p")
    assert found.desired >= 3, "as many as start at once, and not five: the two later ones take the same slots"
    assert found.view is not None
    assert (found.view["wanted"], found.view["reserved"]) == (3, 3)
    assert "and 3 for fixed starts ahead" in found.says[0]


def test_pools_with_fixed_slots_cost_nothing_and_stay(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    add_pool("p", "python", PoolSettings(slots=3), actor="ada")
    submit_tasks(make_tenant(), 300)
    with django_assert_max_num_queries(4):
        assert autoscale() is False
    assert slots() == 3
    assert pool_scale("p").says == ("The pool is not autoscaled: it has the 3 slots that were set.",)


def test_no_slots_beyond_what_the_limit_feeds() -> None:
    make_scaled()
    make_bucket("openai", rate=10.0, burst=10.0)
    submit_tasks(make_tenant(), 1000, resources={"openai": 2.0})
    take_snapshot(None, {}, interval_s=1.0)
    for _ in range(3):
        autoscale()
        let_time_pass(1.0)
    assert slots() == 5
    found = pool_scale("p")
    assert any("The limit openai supports only 5 (10/s × 1 s ÷ 2 each)" in sentence for sentence in found.says)
    assert found.view is not None
    assert found.view["ceiling"] == {"resource": "openai", "slots": 5.0}
    edit_resource("openai", 1, {"rate": 40.0}, actor="ada")
    autoscale()
    assert slots() == 10


def test_a_new_leader_goes_on_where_the_last_one_stopped() -> None:
    make_scaled()
    tenant = make_tenant()
    autoscale()
    for _ in range(5):
        submit_tasks(tenant, 20)
        let_time_pass(1.0)
        autoscale()
    view = pool_scale("p").view
    assert view is not None
    assert view["arrivals_per_s"] > 5.0


def test_remote_workers_are_only_asked_for() -> None:
    make_scaled("remote", slots=40)
    submit_tasks(make_tenant(), 300)
    autoscale()
    assert slots() == 40
    found = pool_scale("p")
    assert 0 < found.desired <= 40
    PoolScale.objects.update(desired=2)
    let_time_pass(1.0)
    autoscale()
    assert pool_scale("p").desired == 6, "steps go from what was desired"


def test_an_idle_pool_gives_its_slots_back_and_wakes_up() -> None:
    make_scaled(autoscale=QUICK, slots=2)
    for _ in range(3):
        autoscale()
        let_time_pass(100.0)
    assert slots() == 0
    submit_tasks(make_tenant(), 1)
    autoscale()
    assert slots() == 1
    assert len(HandWorker({PoolId(Pool.objects.get().pk): 40}).start()) == 1


def test_the_audit_is_told_once_a_minute() -> None:
    make_scaled(slots_max=1000)
    submit_tasks(make_tenant(), 1000)
    submit_tasks(make_tenant("globex"), 1000)
    for _ in range(3):
        autoscale()
        let_time_pass(1.0)
    events = AuditEvent.objects.filter(action="pool.scale")
    assert events.count() == 1
    event = events.get()
    assert (event.actor, event.source) == ("autoscaler", "system")
    assert (event.before, event.after) == ({"slots": 2}, {"slots": 6})
    assert "waiting" in event.reason
    let_time_pass(60.0)
    autoscale()
    told = events.latest("id")
    assert events.count() == 2
    assert told.before == {"slots": 6}
    assert told.after == {"slots": slots()}


def test_a_paused_pool_needs_nothing() -> None:
    make_scaled(autoscale=QUICK, slots=3)
    submit_tasks(make_tenant(), 300)
    Pool.objects.update(paused_at="2026-01-01T00:00:00Z")
    autoscale()
    assert slots() == 2
    assert pool_scale("p").says[0] == "0: the pool is paused, so nothing starts."


def test_an_edit_of_the_bounds_moves_the_slots_inside() -> None:
    make_scaled(slots=20)
    version = Pool.objects.get().version
    edit_pool("p", version, {"slots_max": 8}, actor="ada")
    assert slots() == 8
    with pytest.raises(Refused):
        edit_pool("p", version + 1, {"slots": 9}, actor="ada")


def test_resizing_does_not_make_an_operators_edit_late() -> None:
    make_scaled()
    version = Pool.objects.get().version
    submit_tasks(make_tenant(), 300)
    autoscale()
    edit_pool("p", version, {"slots_max": 30}, actor="ada")
    assert Pool.objects.get().version == version + 1


def test_the_picture_shows_what_was_decided() -> None:
    make_scaled()
    submit_tasks(make_tenant(), 300)
    assert pool_scale("p").says == ("Nothing was decided yet: an engine decides within seconds of its start.",)
    autoscale()
    take_snapshot(None, {}, interval_s=1.0)
    row = latest_snapshot()
    assert row is not None
    pools: Any = row.body["pools"]
    assert pools[0]["desired"] == 6
    assert pools[0]["scale"]["wanted"] == 10
    assert pools[0]["scale"]["says"]


@pytest.mark.parametrize("name", ["nope", "a\x00b"])
def test_an_unknown_pool_has_no_scale(name: str) -> None:
    with pytest.raises(NotFound):
        pool_scale(name)
