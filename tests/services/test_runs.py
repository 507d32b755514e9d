"""Runs on the real database: what they may start, how they end, and what a kill means."""

from __future__ import annotations

import pytest

from scheduler.errors import Conflict, Refused
from scheduler.models import Demand, Run, Task
from scheduler.policy.admission import Submission
from scheduler.policy.runs import Asked, KillScope, RunState
from scheduler.policy.types import ResourceId, RunId, TenantId
from scheduler.reads.why import why
from scheduler.services.kill import kill, kill_run, lift
from scheduler.services.run_tending import tend_runs
from scheduler.services.runs import create_run, finish_run, pause_run, resume_run
from scheduler.services.steps import Needs, demands_of
from scheduler.services.submit import submit
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db


def make_run(tenant: TenantId, **caps: float) -> RunId:
    return create_run(tenant, "{}", asked=Asked(**caps)).id  # type: ignore[arg-type]  # whole numbers stay whole


def test_no_more_of_a_runs_steps_run_at_once_than_its_width() -> None:
    worker = HandWorker({make_pool(slots=100): 100})
    tenant = make_tenant()
    run = make_run(tenant, max_steps=40, max_width=8)
    submit_tasks(tenant, 40, run=run)
    left, rounds = 40, 0
    while left:
        leased = worker.start()
        assert len(leased) == min(8, left)
        assert worker.start() == []
        worker.succeed(leased[: len(leased) // 2 or 1])
        left -= len(leased[: len(leased) // 2 or 1])
        more = worker.start()
        assert len(more) <= 8
        worker.succeed(leased[len(leased) // 2 or 1 :] + more)
        left -= len(leased[len(leased) // 2 or 1 :] + more)
        rounds += 1
    assert rounds < 40


def test_writing_steps_go_one_at_a_time_in_order_beside_reading_ones() -> None:
    worker = HandWorker({make_pool(slots=100): 100})
    tenant = make_tenant()
    run = make_run(tenant)
    writes = [submit(tenant, Submission("{}", pool="p", run=run, writes=True, kind=f"k{n}")).id for n in range(3)]
    reads = submit_tasks(tenant, 2, run=run)
    first = worker.start()
    assert {t.task for t in first} == {writes[0], *reads}
    worker.fail([t for t in first if t.task == writes[0]], retry_after_s=30.0)
    assert worker.start() == [], "the first write comes again, so the second waits"
    assert why(writes[1], tenant).reasons[0].code == "run_write_lock"
    Task.objects.filter(pk=writes[0]).update(due_at="2020-01-01T00:00:00Z")
    again = worker.start()
    assert [t.task for t in again] == [writes[0]]
    worker.succeed(again)
    for write in writes[1:]:
        leased = worker.start()
        assert [t.task for t in leased] == [write]
        worker.succeed(leased)


def test_steps_beyond_the_cap_are_refused_and_a_repeated_one_is_not_another() -> None:
    make_pool()
    tenant = make_tenant()
    run = make_run(tenant, max_steps=2)
    first = submit(tenant, Submission("{}", pool="p", run=run, key="a"))
    submit(tenant, Submission("{}", pool="p", run=run))
    with pytest.raises(Refused, match="max_steps is 2") as refused:
        submit(tenant, Submission("{}", pool="p", run=run))
    assert refused.value.code == "run_steps"
    assert submit(tenant, Submission("{}", pool="p", run=run, key="a")).id == first.id
    with pytest.raises(Refused) as foreign:
        submit(make_tenant("other"), Submission("{}", pool="p", run=run))
    assert foreign.value.code == "unknown_run"


def test_a_killed_run_starts_nothing_its_steps_are_stopped_and_only_a_resume_lets_it_go_on() -> None:
    worker = HandWorker({make_pool(slots=2): 2})
    tenant = make_tenant()
    run = make_run(tenant)
    submit_tasks(tenant, 5, run=run)
    leased = worker.start()
    done = kill_run(run, tenant, actor="ada", reason="it loops")
    assert (done.epoch, done.told) == (1, 2)
    worker.succeed(leased[:1])
    assert worker.start() == []
    with pytest.raises(Conflict) as ended:
        submit(tenant, Submission("{}", pool="p", run=run))
    assert ended.value.code == "run_ended"
    tend_runs()
    states = sorted(Task.objects.values_list("state", flat=True))
    assert states == ["cancelled"] * 4 + ["running"], "a late success does not undo it"
    worker.fail(leased[1:])
    tend_runs()
    assert not Run.objects.get(pk=run).closing
    assert state_of(leased[1].task) == "cancelled"
    resume_run(run, tenant, actor="ada")
    (task,) = submit_tasks(tenant, run=run)
    assert [t.task for t in worker.start()] == [task]


def test_a_paused_run_holds_its_steps_and_a_finished_one_cancels_them() -> None:
    worker = HandWorker({make_pool(slots=1): 1})
    tenant = make_tenant()
    run = make_run(tenant)
    tasks = submit_tasks(tenant, 3, run=run)
    pause_run(run, tenant, actor="ada")
    assert worker.start() == []
    resume_run(run, tenant, actor="ada")
    leased = worker.start()
    assert [t.task for t in leased] == tasks[:1]
    finish_run(run, tenant, RunState.SUCCEEDED, actor="ada", result='{"done": true}')
    tend_runs()
    assert [state_of(t) for t in tasks] == ["running", "cancelled", "cancelled"]
    worker.succeed(leased)
    tend_runs()
    assert not Run.objects.get(pk=run).closing
    assert state_of(tasks[0]) == "succeeded"


@pytest.mark.parametrize(
    ("scope", "name"), [(KillScope.EVERYTHING, None), (KillScope.TENANT, "acme"), (KillScope.POOL, "p")]
)
def test_a_kill_of_more_stops_what_runs_and_holds_what_waits_until_it_is_lifted(
    scope: KillScope, name: str | None
) -> None:
    other_pool = make_pool("q", slots=5)
    worker = HandWorker({make_pool(slots=1): 5, other_pool: 5})
    tasks = submit_tasks(make_tenant(), 2)
    leased = worker.start()
    assert kill(scope, name, actor="ada").told == 1
    with pytest.raises(Conflict):
        kill(scope, name, actor="ada")
    worker.succeed(leased)
    assert worker.start() == []
    others = submit_tasks(make_tenant("other"), 1, pool="q")
    assert [t.task for t in worker.start()] == ([] if scope is KillScope.EVERYTHING else others)
    assert lift(scope, name, actor="ada") == 1
    assert tasks[1] in [t.task for t in worker.start()]


def test_demands_of_runs_have_ids_of_their_own_kind() -> None:
    make_pool()
    tenant = make_tenant()
    submit_tasks(tenant, 1)
    submit_tasks(tenant, 2, run=make_run(tenant))
    plain, of_run = Demand.objects.order_by("-id")
    assert plain.id > 0 > of_run.id
    assert of_run.base_id == plain.id


def test_what_steps_need_is_added_in_one_order_whatever_order_they_come_in() -> None:
    run = make_run(make_tenant())
    limits = [(), (ResourceId(7),), (ResourceId(7), ResourceId(9))]
    kinds = [(each, priced) for each in limits for priced in (False, True)]
    needs = [Needs(each, priced, (), of, writes=False) for of in (run, None) for each, priced in kinds]
    found = demands_of(list(reversed(needs)))
    shared = [found[each] for each in needs if each.run is None]
    assert shared == sorted(shared)
