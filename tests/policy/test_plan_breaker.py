"""Breakers and pauses in a plan: what needs them waits with the reason, everything else goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.explain import Need, Surroundings, WaitingTask, explain
from scheduler.policy.limits import mended
from scheduler.policy.plan import make_plan
from scheduler.policy.states import TaskState
from scheduler.policy.types import PriorityClass, ResourceId, ResourceView, WaitReason
from tests.policy.backlog import Backlog
from tests.policy.build import bucket, task, wait

NOW = 50.0
API, OTHER = ResourceId(1), ResourceId(2)


def backlog(**of_api: object) -> Backlog:
    made = Backlog()
    made.pool(slots=10)
    made.bucket(API, rate=100.0, burst=100.0)
    made.bucket(OTHER, rate=100.0, burst=100.0)
    made.resources[API] = replace(made.resources[API], **of_api)  # type: ignore[arg-type]  # names of the view's fields
    return made


def test_an_open_breaker_holds_every_class_and_tenant_that_needs_it_and_nobody_else() -> None:
    world = backlog(open_until=NOW + 7.0)
    wait(world, task(1), task(2), needs={API: 1.0})
    wait(world, task(3), tenant=2, priority=PriorityClass.CRITICAL, needs={API: 1.0, OTHER: 1.0})
    wait(world, task(4), needs={OTHER: 1.0})
    plan = make_plan(world.snapshot(NOW))
    assert [start.task for start in plan.starts] == [4]
    assert {hold.reason for hold in plan.holds} == {WaitReason.BREAKER_OPEN}
    assert plan.look_again_at == NOW + 7.0
    assert not plan.truncated


def test_half_open_lets_the_best_one_through_and_says_which() -> None:
    world = backlog(open_until=NOW)
    wait(world, task(1), task(2), needs={API: 1.0})
    wait(world, task(3), priority=PriorityClass.CRITICAL, needs={API: 1.0})
    plan = make_plan(world.snapshot(NOW))
    assert [start.task for start in plan.starts] == [3]
    assert plan.probes == {API: 3}
    assert plan.look_again_at is None


def test_nothing_goes_while_a_probe_is_under_way() -> None:
    world = backlog(open_until=NOW - 1.0, probing=True)
    wait(world, task(1), needs={API: 1.0})
    plan = make_plan(world.snapshot(NOW))
    assert plan.starts == ()
    assert (plan.holds[0].reason, plan.holds[0].look_again_at) == (WaitReason.BREAKER_OPEN, None)


def test_the_breaker_is_the_reason_even_where_another_limit_lacks_too() -> None:
    world = backlog(open_until=NOW + 7.0)
    world.resources[OTHER] = replace(world.resources[OTHER], level=0.0, level_at=NOW)
    wait(world, task(1), needs={API: 1.0, OTHER: 50.0})
    (hold,) = make_plan(world.snapshot(NOW)).holds
    assert (hold.reason, hold.resource) == (WaitReason.BREAKER_OPEN, API)
    assert hold.look_again_at == NOW + 7.0


def test_a_paused_limit_gives_nothing_and_nobody_looks_again() -> None:
    world = backlog(paused=True)
    wait(world, task(1), needs={API: 1.0})
    plan = make_plan(world.snapshot(NOW))
    assert (plan.starts, plan.look_again_at) == ((), None)


def test_a_look_ahead_takes_the_provider_to_be_back_when_it_is_tried() -> None:
    view = bucket()
    assert mended(view) is view
    assert mended(replace(view, open_until=9.0, probing=True)) == replace(view, blocked_until=9.0)
    assert mended(replace(view, open_until=9.0, blocked_until=12.0)).blocked_until == 12.0


@pytest.mark.parametrize(
    ("view", "code", "says"),
    [
        (bucket(at=NOW), "next", "Nothing holds it back"),
        (replace(bucket(at=NOW), open_until=NOW + 5), "breaker_open", "it is tried again with one task at"),
        (replace(bucket(at=NOW), open_until=NOW, probing=True), "breaker_open", "one task tries it now"),
        (replace(bucket(at=NOW), paused=True), "resource", "which is paused until somebody resumes it"),
    ],
)
def test_a_task_is_told_that_its_provider_fails(view: ResourceView, code: str, says: str) -> None:
    waiting = WaitingTask(TaskState.READY, "acme", 0, 3, None, (Need("api", 1.0, view),))
    around = Surroundings(NOW, "p", None, "", tenant_suspended=False, slots=5, running=0, free_slots=5, ahead=0)
    (reason,) = explain(waiting, around)
    assert reason.code == code
    assert says in reason.text
