"""How attempts are stopped from outside: by a cancellation, by the loss of their lease, by the end of their engine."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.models import Attempt, Lease, Task, Worker
from scheduler.policy.admission import RetrySettings
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome, TaskId, TenantId
from scheduler.providers.usage import Usage, UsageSource
from scheduler.services.cancel import cancel
from scheduler.services.settle import Report, settle
from tests.conftest import LiveDatabase
from tests.engine.outage import outage
from tests.engine.running import engine, outcomes_of, result_of, wait_for_state
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

AT_ONCE = RetrySettings(initial_backoff_s=0.0)


@pytest.fixture
def tenant(live_database: LiveDatabase) -> TenantId:  # the rows are committed
    """A tenant, its pool `p` and one whose leases are short."""
    make_pool()
    make_pool("short", lease_ttl_s=1.0)
    return make_tenant()


class Endless:
    """An async handler that runs until it is stopped, then does what it was made to do."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.started = threading.Event()
        self.stopped = threading.Event()
        self._stubborn = stubborn

    async def __call__(self, ctx: Any, _payload: object) -> object:
        if ctx.attempt > 1:
            return "second"
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.set()
            if not self._stubborn:
                raise
        return "late"


def as_handler(endless: Endless) -> Any:
    """The same as a function, which is what the executor can tell from a plain one."""

    async def handler(ctx: Any, payload: object) -> object:
        return await endless(ctx, payload)

    return handler


def start_one(tenant: TenantId, endless: Endless, pool: str = "p") -> TaskId:
    """Submit a task and wait until its handler runs."""
    [task] = submit_tasks(tenant, pool=pool, retry=AT_ONCE)
    DOORBELL.ring(Bell.WORK)
    assert endless.started.wait(10)
    return task


@pytest.mark.parametrize("stubborn", [False, True], ids=["stops", "succeeds-late"])
def test_a_cancellation_reaches_the_handler_and_a_late_success_does_not_undo_it(
    tenant: TenantId, stubborn: bool
) -> None:
    endless = Endless(stubborn=stubborn)
    with engine({"p": as_handler(endless)}):
        task = start_one(tenant, endless)
        assert cancel(task, tenant, actor="test").requested
        DOORBELL.ring(Bell.WORK)
        # Leases last 30 s here and are renewed every 10: only the bell can have brought it.
        assert endless.stopped.wait(5)
        wait_for_state(task, "cancelled")
    assert [number for number, _ in outcomes_of(task)] == [1]


@pytest.mark.parametrize("sent", [True, False])
def test_a_call_that_was_stopped_is_billed_if_it_was_sent(tenant: TenantId, sent: bool) -> None:
    endless = Endless()

    async def handler(ctx: Any, payload: object) -> object:
        ctx.bill(lambda: Usage(input_uncached=7, source=UsageSource.UNKNOWN) if sent else None)
        return await endless(ctx, payload)

    with engine({"p": handler}):
        task = start_one(tenant, endless)
        cancel(task, tenant, actor="test")
        DOORBELL.ring(Bell.WORK)
        wait_for_state(task, "cancelled")
    usage = Attempt.objects.get(task_id=task).usage
    assert (usage or {}).get("input_uncached") == (7 if sent else None)


def test_a_plain_handler_can_ask_whether_it_was_cancelled(tenant: TenantId) -> None:
    started, noticed = threading.Event(), threading.Event()

    def handler(ctx: Any, _payload: object) -> object:
        started.set()
        wait_until(ctx.is_cancelled)
        noticed.set()
        return "late"

    with engine({"p": handler}):
        [task] = submit_tasks(tenant)
        assert started.wait(10)
        cancel(task, tenant, actor="test")
        DOORBELL.ring(Bell.WORK)
        assert noticed.wait(5)
        wait_for_state(task, "cancelled")


def test_a_cancellation_whose_bell_is_lost_comes_with_the_next_renewal(tenant: TenantId) -> None:
    endless = Endless()
    with engine({"short": as_handler(endless)}):
        task = start_one(tenant, endless, "short")
        cancel(task, tenant, actor="test")
        wait_for_state(task, "cancelled")


@pytest.mark.parametrize("stubborn", [False, True], ids=["stops", "succeeds-late"])
def test_an_attempt_whose_lease_was_ended_elsewhere_is_stopped_and_says_nothing(
    tenant: TenantId, stubborn: bool
) -> None:
    endless = Endless(stubborn=stubborn)
    with engine({"short": as_handler(endless)}):
        task = start_one(tenant, endless, "short")
        lease = LeaseId(Lease.objects.get(task_id=task).lease_id)
        settle([Report(lease, Outcome.LOST, Failure(FailureClass.LOST, "by the test"))])
        assert endless.stopped.wait(5)
        wait_for_state(task, "succeeded")
    assert outcomes_of(task) == [(1, "lost"), (2, "succeeded")]
    assert result_of(task) == "second"


def test_what_cannot_be_renewed_is_stopped_before_it_may_run_elsewhere(
    tenant: TenantId, live_database: LiveDatabase
) -> None:
    endless = Endless()
    with engine({"short": as_handler(endless)}):
        task = start_one(tenant, endless, "short")
        with outage(live_database.name):
            assert endless.stopped.wait(10)
        wait_for_state(task, "succeeded", timeout_s=30)
    assert outcomes_of(task) == [(1, "lost"), (2, "succeeded")]


def test_a_stopping_engine_lets_what_runs_end_and_begins_nothing(tenant: TenantId) -> None:
    started, go_on = threading.Event(), threading.Event()

    def handler(_ctx: object, _payload: object) -> object:
        started.set()
        assert go_on.wait(10)
        return "whole"

    with engine({"p": handler}, grace_s=20) as running:
        [task] = submit_tasks(tenant)
        assert started.wait(10)
        running.tell_to_stop()
        wait_until(lambda: Worker.objects.filter(draining=True).exists(), what="the engine to bow out")
        [later] = submit_tasks(tenant)
        go_on.set()
        running.join()
    assert Task.objects.get(pk=task).state == "succeeded"
    assert Task.objects.get(pk=later).state == "ready"
    assert outcomes_of(later) == []
    assert not Worker.objects.exists()


def test_what_does_not_end_within_the_grace_is_handed_back_unspent(tenant: TenantId) -> None:
    endless = Endless()
    with engine({"p": as_handler(endless)}, grace_s=0.1) as running:
        task = start_one(tenant, endless)
        running.stop()
    assert endless.stopped.is_set()
    row = Task.objects.get(pk=task)
    assert (row.state, row.attempts) == ("ready", 0)
    assert outcomes_of(task) == [(1, "released")]
    assert not Lease.objects.exists()


def test_an_abandoned_engine_hands_back_without_waiting_for_its_grace(tenant: TenantId) -> None:
    endless = Endless()
    with engine({"p": as_handler(endless)}, grace_s=1_000) as running:
        task = start_one(tenant, endless)
        running.tell_to_stop()
        wait_until(lambda: Worker.objects.filter(draining=True).exists(), what="the engine to bow out")
        running.engine.abandon()
        running.join()
    assert outcomes_of(task) == [(1, "released")]


def test_what_was_given_to_a_stopping_engine_and_not_begun_is_handed_back(tenant: TenantId) -> None:
    """The leader may still hand out work to an engine that has just been told to stop."""
    endless = Endless()
    with engine({"p": as_handler(endless)}) as running:
        task = start_one(tenant, endless)
        lease = Lease.objects.get(task_id=task)
        [given] = submit_tasks(tenant, pool="short")
        Task.objects.filter(pk=given).update(state="running", attempts=1)
        lease.pk, lease.task_id, lease.picked_up = None, given, False
        running.tell_to_stop()
        lease.save(force_insert=True)
        running.join()
    assert outcomes_of(given) == [(1, "released")]
    assert Task.objects.get(pk=given).state == "ready"


def test_an_engine_told_to_stop_while_the_database_is_away_gives_up_in_time(
    tenant: TenantId, live_database: LiveDatabase
) -> None:
    endless = Endless()
    with engine({"p": as_handler(endless)}, grace_s=0.1) as running:
        task = start_one(tenant, endless)
        with outage(live_database.name):
            running.tell_to_stop()
            running.join()
    assert Lease.objects.filter(task_id=task).exists()  # for the reaper of another engine
