"""No page asks the database more than a dozen times, whatever it is about and however busy that is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client

from scheduler.models import DeadGroup, Pool, Snapshot
from scheduler.policy.graph import Dependency
from scheduler.policy.types import PoolId, RunId, TaskId, TenantId
from scheduler.services.dead import fold_dead
from tests.support.statements import statements
from tests.support.work import HandWorker, make_bucket, make_tenant, submit_tasks
from tests.web.conftest import WithRole
from tests.web.runs_cast import add_step, busy_run, make_schedule, take_time

MOST = 12
BOUNDARIES = ("SAVEPOINT", "RELEASE SAVEPOINT")
"""A test's transaction is around those of the page, which then begin and end by these."""


@dataclass(frozen=True)
class Things:
    """Things that have pages of their own."""

    run: RunId
    step: TaskId
    waiting: TaskId
    blocked: TaskId
    dead: TaskId
    schedule: int
    group: str


@pytest.fixture
def admin(with_role: WithRole, snapshot: Snapshot) -> Client:
    return with_role("admin")


@pytest.fixture
def things(admin: Client, llm: Pool) -> Things:
    acme, pool = make_tenant("acme", max_in_flight=50, start_rate=100.0, start_burst=100.0), PoolId(llm.pk)
    make_bucket("openai", rate=10.0, burst=1000.0)
    dead = _died(acme, pool)
    run = busy_run(acme, pool)
    (waiting,) = submit_tasks(acme, pool="llm", resources={"openai": 1.0}, key="order-7")
    (blocked,) = submit_tasks(acme, pool="llm", after=(Dependency(id=waiting),))
    step, schedule = add_step(acme, run), make_schedule(acme, "nightly")
    take_time()
    return Things(run, step, waiting, blocked, dead, schedule, f"{DeadGroup.objects.get().fingerprint:016x}")


def _died(tenant: TenantId, pool: PoolId) -> TaskId:
    Pool.objects.filter(pk=pool).update(max_attempts=1)
    (task,) = submit_tasks(tenant, pool="llm", kind="summary")
    Pool.objects.filter(pk=pool).update(max_attempts=3)
    worker = HandWorker({pool: 8})
    worker.fail(worker.start())
    fold_dead()
    return task


PAGES = [
    "/ops/",
    "/ops/pools/",
    "/ops/pools/llm/",
    "/ops/pools/llm/edit/",
    "/ops/several-pools/?pool=llm",
    "/ops/resources/",
    "/ops/resources/openai/",
    "/ops/resources/openai/edit/",
    "/ops/slo/",
    "/ops/slo/?of=resource:openai&value=5",
    "/ops/slo/?of=pool:llm&value=3",
    "/ops/tasks/",
    "/ops/tasks/?filter=state:dead+tenant:acme+pool:llm",
    "/ops/tasks/{waiting}/",
    "/ops/tasks/{blocked}/",
    "/ops/tasks/{step}/",
    "/ops/tasks/{dead}/",
    "/ops/dead/",
    "/ops/dead/?filter=tenant:acme",
    "/ops/dead/{group}/",
    "/ops/operations/",
    "/ops/operations/new/?kind=replay&filter=state:dead",
    "/ops/operations/new/?kind=cancel&filter=state:waiting",
    "/ops/cost/",
    "/ops/cost/?tenant=acme&days=90",
    "/ops/tenants/",
    "/ops/tenants/acme/",
    "/ops/tenants/acme/edit/",
    "/ops/tenants/acme/budget/",
    "/ops/runs/",
    "/ops/runs/?tenant=acme",
    "/ops/runs/{run}/",
    "/ops/runs/{run}/kill/",
    "/ops/runs/{run}/caps/",
    "/ops/kills/",
    "/ops/schedules/",
    "/ops/schedules/new/",
    "/ops/schedules/{schedule}/",
    "/ops/schedules/{schedule}/edit/",
    "/ops/workers/",
    "/ops/audit/",
    "/ops/settings/",
    "/ops/settings/tokens/",
    "/ops/settings/webhooks/",
    "/ops/search/?q=acme",
]


def test_no_page_asks_more_than_a_dozen_times(admin: Client, things: Things) -> None:
    asked = {}
    for page in PAGES:
        path = page.format(**vars(things))
        admin.get(path)
        with statements() as sent:
            response = admin.get(path)
        assert response.status_code == 200, path
        asked[page] = [each for each in sent if not each.startswith(BOUNDARIES)]
    assert {page: "\n".join(sent) for page, sent in asked.items() if len(sent) > MOST} == {}
