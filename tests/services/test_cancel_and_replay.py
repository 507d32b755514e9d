"""What an owner may do to a task, in every state, and against a worker that reports at the same time."""

import pytest

from scheduler.errors import Conflict, NotFound
from scheduler.models import AuditEvent, Task
from scheduler.policy.states import REPLAYABLE, TERMINAL, WAITING, TaskState
from scheduler.policy.types import FailureClass, Outcome, TaskId, TenantId
from scheduler.services.cancel import cancel
from scheduler.services.replay import replay
from scheduler.services.settle import Report, settle
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db


def put(task: TaskId, state: TaskState) -> None:
    Task.objects.filter(pk=task).update(state=state.value)


@pytest.mark.parametrize("state", sorted(WAITING))
def test_a_waiting_task_is_cancelled_at_once(state: TaskState) -> None:
    tenant = make_tenant()
    make_pool()
    (task,) = submit_tasks(tenant)
    put(task, state)
    done = cancel(task, tenant, actor="ada", reason="not needed")
    assert (done.state, done.requested) == (TaskState.CANCELLED, False)
    assert state_of(task) == "cancelled"
    event = AuditEvent.objects.get(action="task.cancel")
    assert (event.before, event.reason) == ({"state": state.value}, "not needed")


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_ended_task_stays_as_it_ended(state: TaskState) -> None:
    tenant = make_tenant()
    make_pool()
    (task,) = submit_tasks(tenant)
    put(task, state)
    with pytest.raises(Conflict, match=state.value):
        cancel(task, tenant, actor="ada")
    assert state_of(task) == state.value


def test_a_running_task_is_told_to_stop_and_a_late_success_does_not_undo_it() -> None:
    tenant = make_tenant()
    worker = HandWorker({make_pool(): 1})
    (task,) = submit_tasks(tenant)
    (leased,) = worker.start()
    done = cancel(task, tenant, actor="ada")
    assert (done.state, done.requested) == (TaskState.RUNNING, True)
    settle([Report(leased.lease, Outcome.SUCCEEDED, result='"late"')])
    assert state_of(task) == "cancelled"


@pytest.mark.parametrize("state", sorted(REPLAYABLE))
def test_an_ended_task_is_run_afresh_under_its_own_id(state: TaskState) -> None:
    tenant = make_tenant()
    make_pool()
    (task,) = submit_tasks(tenant, key="once")
    put(task, state)
    assert replay(task, tenant, actor="ada", reason="mended") is TaskState.READY
    row = Task.objects.get(pk=task)
    assert (row.state, row.replays, row.attempts, row.key) == ("ready", 1, 0, "once")
    assert Task.objects.count() == 1


@pytest.mark.parametrize("state", sorted(set(TaskState) - REPLAYABLE))
def test_other_states_are_not_replayed(state: TaskState) -> None:
    tenant = make_tenant()
    make_pool()
    (task,) = submit_tasks(tenant)
    put(task, state)
    with pytest.raises(Conflict, match=state.value):
        replay(task, tenant, actor="ada")
    assert not AuditEvent.objects.filter(action="task.replay").exists()


def test_a_report_of_an_attempt_before_the_replay_changes_nothing() -> None:
    tenant = make_tenant()
    worker = HandWorker({make_pool(): 1})
    (task,) = submit_tasks(tenant)
    (old,) = worker.start()
    worker.fail([old], FailureClass.PERMANENT)
    assert state_of(task) == "failed"
    replay(task, tenant, actor="ada")
    assert worker.succeed([old]).stale == (old.lease,)
    assert state_of(task) == "ready"
    (new,) = worker.start()
    worker.succeed([new])
    assert state_of(task) == "succeeded"


def test_another_tenants_task_is_not_there() -> None:
    tenant, rival = make_tenant(), make_tenant("globex")
    make_pool()
    (task,) = submit_tasks(tenant)
    for stranger in (rival, TenantId(2**40)):
        with pytest.raises(NotFound):
            cancel(task, stranger, actor="eve")
        with pytest.raises(NotFound):
            replay(task, stranger, actor="eve")
    with pytest.raises(NotFound):
        cancel(TaskId(2**62), None, actor="eve")
    assert cancel(task, None, actor="root").state is TaskState.CANCELLED
