"""Whoever holds what others wait for is given up by the server when it stands still: a suspended one stops nobody."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import transaction

from scheduler.policy.types import LeasedTask, Outcome, WorkerId
from scheduler.store import bounds, dispatch, leases, overview, queries, settle
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db

ME = WorkerId(str(uuid4()))


def give_up_after() -> str:
    row = queries.fetch_one("SELECT current_setting('idle_in_transaction_session_timeout')")
    assert row is not None
    return str(row[0])


def end(leased: LeasedTask) -> None:
    assert settle.end_leases([settle.Ending(leased.lease, Outcome.SUCCEEDED)])


@pytest.mark.parametrize(
    "hold",
    [
        lambda _: dispatch.lock(),
        end,
        lambda leased: leases.see_worker(leased.worker),
        lambda _: leases.take_leadership(ME, ttl_s=3.0),
        lambda _: overview.fold_counts(),
        lambda leased: bounds.take_turns([leased.pool], [leased.tenant]),
    ],
    ids=["plan", "settle", "renew", "lead", "fold", "submit-near-a-bound"],
)
def test_a_transaction_that_others_wait_for_ends_when_it_stands_still(
    hold: Callable[[LeasedTask], object],
) -> None:
    worker = HandWorker({make_pool(): 5})
    submit_tasks(make_tenant())
    [leased] = worker.start()
    queries.run("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
    with transaction.atomic():
        hold(leased)
        assert give_up_after() == "5s"


@pytest.mark.parametrize("rows", [0, 1, 50])
@pytest.mark.parametrize("shut", [(), ("seqscan",), ("nestloop",), ("nestloop", "hashjoin"), ("nestloop", "mergejoin")])
def test_the_turn_to_plan_is_taken_however_the_optimizer_reads_limits_of_which_there_are_none(
    shut: tuple[str, ...], rows: int
) -> None:
    for table in ("resource", "resource_state"):
        queries.run(f"UPDATE pg_class SET reltuples = {rows}, relpages = 1 WHERE relname = '{table}'")
    for way in shut:
        queries.run(f"SET LOCAL enable_{way} = off")
    assert dispatch.lock() == {}
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    assert queries.fetch_one(locks) == (1,)
