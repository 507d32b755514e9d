"""Lanes that their runs hold are not looked at until they may open, and then at once: with a book that is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.models import Task
from scheduler.policy.lanebook import LaneBook
from scheduler.policy.runs import Asked
from scheduler.policy.types import LeasedTask, RunId, TenantId
from scheduler.services import heartbeat
from scheduler.services.cancel import cancel
from scheduler.services.dispatch import dispatch
from scheduler.services.runs import create_run, edit_caps, pause_run, resume_run
from scheduler.store import overview
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


class Planner(HandWorker):
    """A worker that plans with the book of its plan before."""

    def __init__(self) -> None:
        super().__init__({make_pool(slots=100): 100})
        self.book = LaneBook()

    def start(self) -> list[LeasedTask]:
        """Plan once."""
        heartbeat.renew(self.id, [])
        return list(dispatch(me=self.id, book=self.book).leased)


def held_run(tenant: TenantId, planner: Planner) -> tuple[RunId, list[LeasedTask]]:
    """A run with a step that runs and one that its width holds, as the planner has seen."""
    run = create_run(tenant, "{}", asked=Asked(max_width=1)).id
    submit_tasks(tenant, 2, run=run)
    leased = planner.start()
    assert len(leased) == 1
    assert planner.start() == []
    assert len(planner.book.parking) == 1
    return run, leased


def ends(planner: Planner, leased: list[LeasedTask], _run: RunId) -> None:
    planner.succeed(leased)


def is_widened(_planner: Planner, _leased: list[LeasedTask], run: RunId) -> None:
    edit_caps(run, None, 1, {"max_width": 2}, actor="ada")


def pauses_meanwhile(planner: Planner, leased: list[LeasedTask], run: RunId) -> None:
    pause_run(run, None, actor="ada")
    planner.succeed(leased)
    assert planner.start() == []
    assert len(planner.book.parking) == 1
    resume_run(run, None, actor="ada")


@pytest.mark.parametrize("happens", [ends, is_widened, pauses_meanwhile])
@pytest.mark.parametrize("folded", [False, True])
def test_a_parked_lane_starts_in_the_first_plan_that_may(
    happens: Callable[[Planner, list[LeasedTask], RunId], None], folded: bool
) -> None:
    planner, tenant = Planner(), make_tenant()
    run, leased = held_run(tenant, planner)
    if folded:
        overview.fold_counts()
        assert planner.start() == []
        assert len(planner.book.parking) == 1, "a fold alone lets nothing be read"
    happens(planner, leased, run)
    assert len(planner.start()) == 1
    assert len(planner.book.parking) == 0


def test_a_write_behind_one_that_comes_again_starts_when_that_is_cancelled_or_done() -> None:
    planner, tenant = Planner(), make_tenant()
    run = create_run(tenant, "{}").id
    first, second = submit_tasks(tenant, run=run, writes=True) + submit_tasks(tenant, run=run, writes=True, kind="k")
    leased = planner.start()
    assert [task.task for task in leased] == [first]
    planner.fail(leased, retry_after_s=30.0)
    assert planner.start() == []
    cancel(first, tenant, actor="ada")
    overview.fold_counts()
    assert [task.task for task in planner.start()] == [second]


def test_a_retried_write_comes_before_the_one_that_was_parked_for_it() -> None:
    planner, tenant = Planner(), make_tenant()
    run = create_run(tenant, "{}").id
    first, second = submit_tasks(tenant, 2, run=run, writes=True)
    planner.fail(planner.start(), retry_after_s=30.0)
    assert planner.start() == []
    Task.objects.filter(pk=first).update(due_at="2020-01-01T00:00:00Z")
    leased = planner.start()
    assert [task.task for task in leased] == [first]
    planner.succeed(leased)
    assert [task.task for task in planner.start()] == [second]


def test_steps_hold_what_they_draw_on_whichever_run_they_are_of() -> None:
    make_bucket("r", rate=1e-9, burst=3.0)
    planner, tenant = Planner(), make_tenant()
    for _ in range(5):
        submit_tasks(tenant, run=create_run(tenant, "{}").id, resources={"r": 1.0})
    assert len(planner.start()) == 3
    assert planner.start() == []
