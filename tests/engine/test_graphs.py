"""An engine and tasks that come after others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from scheduler.engine.doorbell import ring
from scheduler.models import Attempt, Task
from scheduler.policy.admission import Submission
from scheduler.policy.graph import Dependency
from scheduler.services.submit import submit, submit_batch
from tests.conftest import LiveDatabase
from tests.engine.running import engine, outcomes_of, result_of, wait_for_state
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant


async def answer(ctx: Any, payload: Any) -> Any:
    """What came from above, or the payload."""
    return {name: parent["result"] for name, parent in ctx.upstream.items()} or payload


@contextmanager
def unreadable_edges() -> Iterator[None]:
    """While this lasts, nobody can read what a task comes after."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE task_edge RENAME COLUMN key TO hidden")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE task_edge RENAME COLUMN hidden TO key")


def test_an_attempt_whose_upstream_cannot_be_read_is_handed_back_unspent(live_database: LiveDatabase) -> None:
    tenant = make_tenant()
    make_pool()
    nodes = [Submission("7", pool="p", key="a"), Submission("0", pool="p", key="b", after=(Dependency("a"),))]
    first, second = (accepted.id for accepted in submit_batch(tenant, nodes))
    with unreadable_edges(), engine({"p": answer}) as running:
        wait_for_state(first, "succeeded")
        wait_until(lambda: Attempt.objects.filter(task_id=second).exists(), what="the child to be handed back")
        assert set(outcomes_of(second)) == {(1, "released")}
        wait_for_state(second, "retrying")
        running.stop()
    with engine({"p": answer}):
        wait_for_state(second, "succeeded")
    assert result_of(second) == {"a": 7}
    assert Task.objects.get(pk=second).attempts == 1


def test_a_task_let_go_by_a_settlement_starts_without_waiting_for_the_next_look(live_database: LiveDatabase) -> None:
    tenant = make_tenant()
    make_pool()
    with engine({"p": answer}, poll_s=60.0, leader_ttl_s=120.0):
        chain = [
            Submission(str(n), pool="p", key=f"t{n}", after=(Dependency(f"t{n - 1}"),) * (n > 0)) for n in range(10)
        ]
        last = submit_batch(tenant, chain)[-1]
        # The bell that a web process would ring.
        ring()
        wait_for_state(last.id, "succeeded")
        late = submit(tenant, Submission("1", pool="p", after=(Dependency("t9"),)))
        ring()
        wait_for_state(late.id, "succeeded")
