"""A tenant's own limits on the real database: a campaign starts at its rate, and says why it waits."""

from __future__ import annotations

import pytest

from scheduler.models import FairCounter, Tenant
from scheduler.policy.types import TaskId
from scheduler.reads.why import why
from scheduler.services import tenants
from tests.support.waiting import wait_until
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def reasons(task: TaskId) -> list[str]:
    return [reason.code for reason in why(task, None).reasons]


def test_a_campaign_of_a_hundred_starts_at_five_a_second_and_others_do_not_notice() -> None:
    worker = HandWorker({make_pool(slots=200): 200})
    campaign = submit_tasks(make_tenant("campaign", start_rate=5.0, start_burst=5.0), 100)
    other = submit_tasks(make_tenant("other"), 20)
    first = worker.dispatch()
    began = {task.task for task in first.leased}
    assert set(other) <= began
    assert len(began & set(campaign)) == 5
    assert first.look_again_at is not None
    assert 0.0 < first.look_again_at - first.now <= 0.2 + 1e-3
    said = why(campaign[-1], None).reasons[0]
    assert said.code == "tenant_start_rate"
    assert said.text.startswith("The tenant campaign may start 5 tasks a second; its next start is due in ")
    came: list[float] = []
    wait_until(lambda: _more(worker, came) >= 10, what="ten more starts")
    assert came[-1] - first.now >= 10 / 5.0 - 0.01, "no more than the rate allows by the clock of the database"


def _more(worker: HandWorker, came: list[float]) -> int:
    done = worker.dispatch()
    came += [done.now] * len(done.leased)
    return len(came)


def test_no_more_of_a_tenant_run_than_it_may() -> None:
    worker = HandWorker({make_pool(slots=50): 50})
    mine = submit_tasks(make_tenant("narrow", max_in_flight=2), 5)
    leased = worker.start()
    assert len(leased) == 2
    assert worker.start() == []
    assert reasons(mine[-1])[0] == "tenant_in_flight"
    worker.succeed(leased[:1])
    assert len(worker.start()) == 1


def test_an_edit_of_the_limit_works_at_the_next_plan() -> None:
    worker = HandWorker({make_pool(slots=50): 50})
    tenant = make_tenant("closed", start_rate=0.0, start_burst=1.0)
    (task,) = submit_tasks(tenant, 1)
    assert worker.start() == []
    assert "its limit is 0" in why(task, None).reasons[0].text
    tenants.edit_tenant("closed", 1, {"start_rate": None}, actor="ada")
    assert len(worker.start()) == 1


def test_a_tenant_that_is_active_again_is_seated_as_one_that_was_idle() -> None:
    worker = HandWorker({make_pool(slots=1): 1})
    submit_tasks(make_tenant("paused"), 2)
    worker.start()
    paused = Tenant.objects.get(slug="paused")
    tenants.edit_tenant("paused", 1, {"status": "suspended"}, actor="ada")
    before = FairCounter.objects.get(tenant_id=paused.pk).last_start_at
    tenants.edit_tenant("paused", 2, {"status": "active"}, actor="ada")
    assert FairCounter.objects.get(tenant_id=paused.pk).last_start_at < before
