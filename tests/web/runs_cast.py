"""Runs and schedules as the console meets them: a run with steps done, failed, writing and waiting; a nightly task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from scheduler.models import Run, Schedule, Tenant
from scheduler.policy.admission import Submission
from scheduler.policy.runs import Asked
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.policy.types import FailureClass, PoolId, RunId, TaskId, TenantId
from scheduler.services import receipts
from scheduler.services.changes import Author
from scheduler.services.runs import create_run
from scheduler.services.schedules import Declared, add_schedule
from scheduler.services.submit import submit
from tests.support.statements import statements
from tests.support.work import HandWorker


@contextmanager
def at_most(number: int) -> Iterator[None]:
    """No more statements than these are sent to the database in the block."""
    with statements() as sent:
        yield
    assert len(sent) <= number, "\n".join(sent)


def make_run(tenant: TenantId, name: str = "research") -> RunId:
    """A run with nothing in it."""
    asked = Asked(max_steps=40, max_width=3, max_cost_nano=5_000_000_000)
    return create_run(tenant, '{"ask": "<script>alert(1)</script>"}', asked=asked, name=name).id


def take_time() -> None:
    """A plan wants its transaction to end soon; a test's goes on while pages are drawn."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")


def run_of_tests() -> RunId:
    """The run that links name: the first in the database, made for whoever has none."""
    known = Run.objects.order_by("id").first()
    return make_run(TenantId(Tenant.objects.order_by("id")[0].pk)) if known is None else RunId(known.pk)


def make_schedule(tenant: TenantId, name: str, cron: str = "30 2 * * *", zone: str = "Europe/Berlin") -> int:
    """A schedule of a task of the pool `llm`."""
    task = {"pool": "llm", "payload": {"prompt": "<script>alert(1)</script>"}}
    declared = Declared(cron, zone, task, Overlap.SKIP, CatchUp.LAST)
    return int(add_schedule(tenant, name, declared, Author("mira", "api")).id)


def schedule_of_tests() -> int:
    """The schedule that links name: the first in the database, made for whoever has none."""
    known = Schedule.objects.order_by("id").first()
    return make_schedule(TenantId(Tenant.objects.order_by("id")[0].pk), "nightly") if known is None else known.pk


def add_step(tenant: TenantId, run: RunId, kind: str = "read", *, writes: bool = False) -> TaskId:
    """A step of the pool `llm`."""
    return submit(tenant, Submission("{}", pool="llm", kind=kind, run=run, writes=writes)).id


def busy_run(tenant: TenantId, pool: PoolId, name: str = "research") -> RunId:
    """A run with a history and work in progress."""
    run = make_run(tenant, name)
    worker = HandWorker({pool: 8})
    for kind in ("plan", "search", "search"):
        add_step(tenant, run, kind)
    leased = worker.start()
    receipts.save_checkpoint(run, '{"page": 3}', lease=leased[0].lease, tenant=tenant, after=None)
    receipts.claim(run, "send-mail", "a", lease=leased[0].lease, tenant=tenant)
    receipts.claim(run, "book-<b>room</b>", "b", lease=leased[0].lease, tenant=tenant)
    receipts.commit(run, "send-mail", '{"id": 7}', lease=leased[0].lease, tenant=tenant)
    worker.succeed(leased[:2])
    worker.fail(leased[2:], FailureClass.THROTTLED, retry_after_s=900.0)
    add_step(tenant, run, "write_report", writes=True)
    add_step(tenant, run, "read")
    worker.start()
    for _ in range(2):
        add_step(tenant, run, "summary", writes=True)
    take_time()
    return run
