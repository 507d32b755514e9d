"""A run as the console meets it: some steps done, one failed and tried again, one that writes, the rest waiting."""

from __future__ import annotations

from django.db import connection

from scheduler.models import Run, Tenant
from scheduler.policy.admission import Submission
from scheduler.policy.runs import Asked
from scheduler.policy.types import FailureClass, PoolId, RunId, TaskId, TenantId
from scheduler.services import receipts
from scheduler.services.runs import create_run
from scheduler.services.submit import submit
from tests.support.work import HandWorker


def make_run(tenant: TenantId, name: str = "research") -> RunId:
    """A run with nothing in it."""
    asked = Asked(max_steps=40, max_width=3, max_cost_nano=5_000_000_000)
    return create_run(tenant, '{"ask": "<script>alert(1)</script>"}', asked=asked, name=name).id


def run_of_tests() -> RunId:
    """The run that links name: the first in the database, made for whoever has none."""
    known = Run.objects.order_by("id").first()
    return make_run(TenantId(Tenant.objects.order_by("id")[0].pk)) if known is None else RunId(known.pk)


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
    # A plan ends its own transaction soon; this one goes on while pages are drawn.
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
    return run
