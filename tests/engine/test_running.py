"""What keeps an engine going: several of them, changes while it runs, the clock, lost bells and a lost database."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.models import Attempt, Leader, Pool, Task
from scheduler.policy.admission import RetrySettings
from scheduler.policy.types import PoolId, TenantId, WorkerId
from scheduler.services import heartbeat
from scheduler.services.dispatch import dispatch
from scheduler.services.pools import edit_pool, load_pool, pause_pool, resume_pool
from tests.conftest import LiveDatabase
from tests.engine import sample_handlers
from tests.engine.outage import cut_connections, outage
from tests.engine.running import engine, outcomes_of, result_of, wait_for_state
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

# An engine with these looks only when a bell or the clock says so.
PATIENT: dict[str, Any] = {"poll_s": 60.0, "leader_ttl_s": 120.0}


@pytest.fixture
def tenant(live_database: LiveDatabase) -> TenantId:  # the rows are committed
    """A tenant and its pool `p`."""
    make_pool(slots=4)
    return make_tenant()


async def at_once(_ctx: object, payload: object) -> object:
    """A handler with nothing to do."""
    return payload


def leader() -> WorkerId | None:
    """Who leads now."""
    row = Leader.objects.first()
    return None if row is None or row.holder is None else WorkerId(str(row.holder))


def wait_for_all(tenant: TenantId, state: str = "succeeded") -> None:
    """Wait until every task of a tenant is in a state."""
    wait_until(lambda: not Task.objects.filter(tenant_id=tenant).exclude(state=state).exists())


class Gate:
    """A handler that counts who is in, and lets everybody out when opened."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.by_engine: dict[str, int] = {}
        self._opened = threading.Event()
        self._lock = threading.Lock()

    def open(self) -> None:
        self._opened.set()

    def at(self, engine_name: str) -> Any:
        """The handler for one engine."""

        def handler(_ctx: object, _payload: object) -> None:
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                self.by_engine[engine_name] = self.by_engine.get(engine_name, 0) + 1
            assert self._opened.wait(20)
            with self._lock:
                self.inside -= 1

        return handler


def test_two_engines_share_one_pool_and_its_slots(tenant: TenantId) -> None:
    gate = Gate()
    with engine({"p": gate.at("a")}), engine({"p": gate.at("b")}):
        submit_tasks(tenant, 40)
        wait_until(lambda: gate.inside == 4)
        gate.open()
        wait_for_all(tenant)
    assert gate.most == 4
    assert sorted(gate.by_engine) == ["a", "b"]
    assert sum(gate.by_engine.values()) == 40
    assert Attempt.objects.count() == 40


def test_when_the_leader_stops_the_other_leads_at_once_and_work_goes_on(tenant: TenantId) -> None:
    with engine({"p": at_once}, leader_ttl_s=60.0) as first:
        wait_until(lambda: leader() == first.engine.id)
        with engine({"p": at_once}, leader_ttl_s=60.0) as second:
            first.stop()
            # Its term lasts a minute: it must have given it up.
            wait_until(lambda: leader() == second.engine.id)
            submit_tasks(tenant, 5)
            wait_for_all(tenant)
    assert Leader.objects.get().term == 2


def test_a_leader_that_loses_its_term_keeps_working_for_the_new_one(tenant: TenantId) -> None:
    with engine({"p": at_once}) as running:
        wait_until(lambda: running.engine.leading)
        other = WorkerId("00000000-0000-4000-8000-000000000001")
        Leader.objects.update(holder=other, term=7, expires_at=now() + timedelta(minutes=5))
        wait_until(lambda: not running.engine.leading)
        [task] = submit_tasks(tenant)
        # What the new leader does, until the engine was seen lately enough to be given the task. A last plan of the
        # engine's own, which had begun while it led, may come before that.
        wait_until(lambda: dispatch(me=other).leased or not Task.objects.filter(state="ready").exists())
        DOORBELL.ring(Bell.WORK)
        wait_for_state(task, "succeeded")


def test_what_the_leader_was_given_by_another_plan_is_picked_up(tenant: TenantId) -> None:
    """Two that believe they lead: any engine may plan, and nobody's work is left lying."""
    pool = PoolId(Pool.objects.get().pk)
    Pool.objects.update(paused_at="2026-01-01T00:00:00Z")
    with engine({"p": at_once}) as running:
        wait_until(lambda: running.engine.leading)
        [task] = submit_tasks(tenant)
        other = WorkerId("00000000-0000-4000-8000-000000000002")
        heartbeat.register(other, name="other", kind="engine", slots={pool: 0})
        Pool.objects.update(paused_at=None)
        dispatch(me=other)
        wait_for_state(task, "succeeded")
    assert outcomes_of(task) == [(1, "succeeded")]


def test_what_a_dead_engine_was_given_goes_to_another_without_spending_an_attempt(tenant: TenantId) -> None:
    dead = WorkerId("00000000-0000-4000-8000-000000000003")
    heartbeat.register(dead, name="dead", kind="engine", slots={PoolId(Pool.objects.get().pk): 4})
    [task] = submit_tasks(tenant, retry=RetrySettings(max_attempts=1))
    assert dispatch(me=WorkerId("00000000-0000-4000-8000-000000000004")).leased[0].worker == dead
    with engine({"p": at_once}):
        wait_for_state(task, "succeeded")
    assert [outcome for _, outcome in outcomes_of(task)][-1] == "succeeded"
    assert {outcome for _, outcome in outcomes_of(task)[:-1]} == {"released"}


def test_a_paused_pool_starts_nothing_until_it_is_resumed(tenant: TenantId) -> None:
    make_pool("other")
    pause_pool("p", actor="test", reason="to see")
    with engine({"p": at_once, "other": at_once}):
        [waits] = submit_tasks(tenant)
        [goes] = submit_tasks(tenant, pool="other")
        wait_for_state(goes, "succeeded")
        assert Task.objects.get(pk=waits).state == "ready"
        resume_pool("p", actor="test")
        DOORBELL.ring(Bell.WORK)
        wait_for_state(waits, "succeeded")


def test_more_slots_take_effect_while_it_runs(tenant: TenantId) -> None:
    gate = Gate()
    with engine({"p": gate.at("a")}):
        submit_tasks(tenant, 12)
        wait_until(lambda: gate.inside == 4)
        edit_pool("p", load_pool("p").version, {"slots": 9, "slots_max": 9}, actor="test")
        wait_until(lambda: gate.inside == 9)
        edit_pool("p", load_pool("p").version, {"slots": 1}, actor="test")
        gate.open()
        wait_for_all(tenant)
    assert gate.most == 9


def test_another_handler_takes_over_and_what_runs_under_the_old_one_ends_well(tenant: TenantId) -> None:
    edit_pool("p", load_pool("p").version, {"config": {"handler": f"{sample_handlers.__name__}:first"}}, actor="test")
    with engine():
        [old] = submit_tasks(tenant, payload='{"wait": true}')
        assert sample_handlers.STARTED.wait(10)
        changes = {"config": {"handler": f"{sample_handlers.__name__}:second"}}
        edit_pool("p", load_pool("p").version, changes, actor="test")

        def new_handler_runs() -> bool:
            [task] = submit_tasks(tenant)
            wait_for_state(task, "succeeded")
            return result_of(task) == "second"

        wait_until(new_handler_runs)
        sample_handlers.GO_ON.set()
        wait_for_state(old, "succeeded")
    assert (result_of(old), outcomes_of(old)) == ("first", [(1, "succeeded")])


def test_a_pool_that_cannot_be_served_harms_no_other_and_is_served_once_it_is_mended(tenant: TenantId) -> None:
    make_pool("broken", config={"handler": "nowhere:nothing"})
    with engine({"p": at_once}):
        [waits] = submit_tasks(tenant, pool="broken")
        [goes] = submit_tasks(tenant)
        wait_for_state(goes, "succeeded")
        assert Task.objects.get(pk=waits).state == "ready"
        mended = {"config": {"handler": f"{sample_handlers.__name__}:second"}}
        edit_pool("broken", load_pool("broken").version, mended, actor="test")
        wait_for_state(waits, "succeeded")


def test_a_bell_brings_work_long_before_the_next_poll(tenant: TenantId) -> None:
    with engine({"p": at_once}, **PATIENT):
        for _ in range(3):
            [task] = submit_tasks(tenant)
            DOORBELL.ring(Bell.WORK)
            wait_for_state(task, "succeeded")


def test_work_whose_bell_was_lost_is_found_by_polling(tenant: TenantId) -> None:
    with engine({"p": at_once}):
        [task] = submit_tasks(tenant)
        wait_for_state(task, "succeeded")


def test_the_clock_alone_starts_what_is_due(tenant: TenantId) -> None:
    async def fails_once(ctx: Any, _payload: object) -> object:
        if ctx.attempt == 1:
            raise ValueError("once")
        return None

    make_pool("flaky")
    with engine({"p": at_once, "flaky": fails_once}, **PATIENT):
        [scheduled] = submit_tasks(tenant, start_in_s=0.6)
        [retried] = submit_tasks(tenant, pool="flaky", retry=RetrySettings(initial_backoff_s=0.6, jitter=False))
        due_at = Task.objects.get(pk=scheduled).due_at
        DOORBELL.ring(Bell.WORK)
        wait_for_state(scheduled, "succeeded")
        wait_for_state(retried, "succeeded")
    assert due_at is not None
    assert Attempt.objects.get(task_id=scheduled).started_at >= due_at
    first, second = Attempt.objects.filter(task_id=retried).order_by("number")
    assert (second.started_at - first.finished_at).total_seconds() >= 0.6


def test_cut_connections_cost_nothing_but_a_moment(tenant: TenantId, live_database: LiveDatabase) -> None:
    go_on = threading.Event()

    async def handler(_ctx: object, payload: object) -> object:
        while payload and not go_on.is_set():  # noqa: ASYNC110  # the event is another thread's
            await asyncio.sleep(0.01)
        return None

    with engine({"p": handler}):
        [task] = submit_tasks(tenant, payload="1")
        wait_for_state(task, "running")
        for _ in range(3):
            cut_connections(live_database.name)
            [after] = submit_tasks(tenant, payload="0")
            wait_for_state(after, "succeeded")
        go_on.set()
        wait_for_state(task, "succeeded")
    assert outcomes_of(task) == [(1, "succeeded")]


def test_an_engine_that_starts_before_its_database_waits_for_it(tenant: TenantId, live_database: LiveDatabase) -> None:
    [task] = submit_tasks(tenant)
    with engine({"p": at_once}, ready=False):
        with outage(live_database.name):
            pass
        wait_for_state(task, "succeeded", timeout_s=30)


def test_reports_that_could_not_be_sent_during_an_outage_are_sent_after_it(
    tenant: TenantId, live_database: LiveDatabase
) -> None:
    go_on, ended = threading.Event(), threading.Event()

    async def handler(_ctx: object, _payload: object) -> object:
        while not go_on.is_set():  # noqa: ASYNC110  # the event is another thread's
            await asyncio.sleep(0.01)
        ended.set()
        return "worth keeping"

    with engine({"p": handler}):
        [task] = submit_tasks(tenant)
        wait_for_state(task, "running")
        with outage(live_database.name):
            go_on.set()
            assert ended.wait(10)
        wait_for_state(task, "succeeded", timeout_s=30)
    assert (result_of(task), outcomes_of(task)) == ("worth keeping", [(1, "succeeded")])
