"""Bounds of pools and tenants where submissions meet them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.errors import Unavailable
from scheduler.models import Pool, PoolState, Task, Tenant, WaitingDepth
from scheduler.policy.admission import Submission
from scheduler.policy.graph import Dependency
from scheduler.policy.types import PriorityClass, TenantId
from scheduler.services.cancel import cancel
from scheduler.services.replay import replay
from scheduler.services.submit import Accepted, submit, submit_batch, submit_each
from scheduler.store import overview
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db

PLAIN = Submission(payload="{}", pool="p")
LOW = replace(PLAIN, priority=PriorityClass.LOW)
HIGH = replace(PLAIN, priority=PriorityClass.HIGH)


def refused(tenant: TenantId, submission: Submission) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        submit(tenant, submission)
    assert caught.value.code == "overloaded"
    return caught.value


def test_a_full_pool_refuses_and_lets_in_again_when_work_starts() -> None:
    tenant, pool = make_tenant(), make_pool(max_pending=3, slots=1)
    submit_tasks(tenant, 3)
    said = refused(tenant, PLAIN)
    assert "'p' is full: 3 tasks wait, and max_pending is 3" in said.detail
    assert said.retry_after_s is not None
    assert 1.0 <= said.retry_after_s <= 60.0
    HandWorker({pool: 1}).start()
    submit(tenant, PLAIN)
    refused(tenant, PLAIN)


def test_whatever_waits_counts() -> None:
    tenant, pool = make_tenant(), make_pool(max_pending=3, slots=1, backoff_initial_s=1000.0)
    (first,) = submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    worker.fail(worker.start())
    assert state_of(first) in {"retrying", "ready"}
    (second,) = submit_tasks(tenant, start_in_s=60.0)
    submit(tenant, replace(PLAIN, after=(Dependency(id=second),)))
    refused(tenant, PLAIN)
    cancel(second, None, actor="test")
    submit(tenant, PLAIN)


@pytest.mark.parametrize("folded", [False, True])
def test_the_bound_is_the_same_before_and_after_counts_are_folded(*, folded: bool) -> None:
    tenant = make_tenant()
    make_pool(max_pending=4)
    submit_tasks(tenant, 3)
    if folded:
        overview.fold_counts()
    submit(tenant, PLAIN)
    refused(tenant, PLAIN)


def test_a_batch_goes_in_whole_or_not_at_all() -> None:
    tenant = make_tenant()
    make_pool(max_pending=5, overflow="shed_lowest")
    low = submit_tasks(tenant, 3, priority=PriorityClass.LOW)
    with pytest.raises(Unavailable):
        submit_batch(tenant, [HIGH] * 6)
    assert [state_of(task) for task in low] == ["ready"] * 3, "nobody is ended for a batch that is refused"
    submit_batch(tenant, [HIGH] * 5)
    assert Task.objects.filter(state="ready").count() == 5
    assert [state_of(task) for task in low] == ["shed"] * 3


def test_unrelated_submissions_are_refused_one_by_one() -> None:
    tenant = make_tenant()
    make_pool(max_pending=2)
    answers = submit_each([(tenant, PLAIN)] * 4)
    assert [isinstance(answer, Accepted) for answer in answers] == [True, True, False, False]


def test_a_repetition_of_a_key_is_never_refused() -> None:
    tenant = make_tenant()
    make_pool(max_pending=1, overflow="shed_lowest", slo={"high": 1.0})
    first = submit(tenant, replace(LOW, key="k"))
    again = submit(tenant, replace(LOW, key="k"))
    assert (again.id, again.duplicate) == (first.id, True)
    PoolState.objects.create(pool=Pool.objects.get(), level=3)
    assert submit(tenant, replace(LOW, key="k")).duplicate
    assert state_of(first.id) == "ready"


def test_shed_lowest_ends_the_newest_of_the_lowest_class() -> None:
    tenant, other = make_tenant(), make_tenant("other")
    make_pool(max_pending=4, overflow="shed_lowest")
    old, new = submit_tasks(tenant, 1, priority=PriorityClass.LOW), submit_tasks(other, 1, priority=PriorityClass.LOW)
    normal = submit_tasks(tenant, 2)
    refused(tenant, LOW)
    submit(tenant, PLAIN)
    assert [state_of(t) for t in (*old, *new, *normal)] == ["ready", "shed", "ready", "ready"]
    submit(tenant, PLAIN)
    assert state_of(old[0]) == "shed"
    refused(tenant, PLAIN)
    submit(tenant, HIGH)
    assert [state_of(t) for t in normal].count("ready") == 2, "the newest normal one went, not these"
    replay(old[0], None, actor="test")
    assert state_of(old[0]) == "ready"


def test_shed_oldest_ends_the_oldest_low_one() -> None:
    tenant = make_tenant()
    make_pool(max_pending=3, overflow="shed_oldest")
    (old,) = submit_tasks(tenant, 1, priority=PriorityClass.LOW)
    (new,) = submit_tasks(tenant, 1, priority=PriorityClass.LOW)
    submit_tasks(tenant)
    submit(tenant, LOW)
    assert (state_of(old), state_of(new)) == ("shed", "ready")
    assert Task.objects.filter(state="ready").count() == 3


def test_those_who_came_after_a_shed_task_are_skipped() -> None:
    tenant = make_tenant()
    make_pool(max_pending=2, overflow="shed_lowest")
    after = (Dependency(key="a"),)
    first, child = submit_batch(tenant, [replace(LOW, key="a"), replace(LOW, key="b", after=after)])
    submit(tenant, HIGH)
    assert (state_of(first.id), state_of(child.id)) == ("shed", "skipped")


def test_a_tenant_has_a_bound_of_its_own_and_no_other_feels_it() -> None:
    tenant, other = make_tenant(max_queued=2), make_tenant("other")
    make_pool(overflow="shed_lowest")
    low = submit_tasks(tenant, 2, priority=PriorityClass.LOW)
    said = refused(tenant, HIGH)
    assert "'acme' has 2 tasks waiting, and max_queued is 2" in said.detail
    assert [state_of(t) for t in low] == ["ready", "ready"], "its own work is not ended for it"
    submit(other, PLAIN)
    Tenant.objects.filter(slug="acme").update(max_queued=None)
    submit(tenant, HIGH)


def test_an_overloaded_pool_refuses_low_and_says_so_to_the_others() -> None:
    tenant, pool = make_tenant(), make_pool(allow_degraded=True)
    state = PoolState.objects.create(pool_id=pool, level=1, predicted_s=7.0)
    assert refused(tenant, LOW).retry_after_s == 7.0
    assert (submit(tenant, PLAIN).overload, submit(tenant, PLAIN).degraded) == (1, False)
    state.level, state.degrades = 3, True
    state.save()
    refused(tenant, PLAIN)
    accepted = submit(tenant, HIGH)
    assert (accepted.overload, accepted.degraded) == (3, True)
    (leased, *_) = HandWorker({pool: 1}).start()
    assert leased.degraded


def test_depths_are_what_a_recount_says() -> None:
    tenant, pool = make_tenant(), make_pool(slots=3, max_attempts=1)
    submit_tasks(tenant, 10)
    worker = HandWorker({pool: 3})
    leased = worker.start()
    overview.fold_counts()
    worker.fail(leased[:1])
    worker.succeed(leased[1:2])
    overview.fold_counts()
    expected = {("pool", pool, 7, 1), ("tenant", tenant, 7, 1)}
    assert set(WaitingDepth.objects.values_list("scope", "scope_id", "waiting", "running")) == expected
