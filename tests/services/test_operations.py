"""Operations on many tasks: the frozen set, the rate, what is skipped and why, and how they are changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from scheduler.errors import Conflict, NotFound, Refused
from scheduler.models import AuditEvent, DeadGroup, DeadLetter, Operation, OperationItem, Task
from scheduler.policy.filters import Filter, parse_filter
from scheduler.policy.operations import Change, OperationKind, narrow
from scheduler.policy.types import PoolId, TaskId, TenantId
from scheduler.reads.operations import load_operation, preview_operation
from scheduler.services.changes import Author
from scheduler.services.dead import discard, fold_dead, restore
from scheduler.services.operating import Worked, work_operations
from scheduler.services.operations import Wanted, change_operation, start_operation
from scheduler.services.prune import Keep, prune
from scheduler.services.replay import replay
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.django_db
ADA = Author("ada", "api", "mended")
K = OperationKind


@pytest.fixture
def acme() -> TenantId:
    return make_tenant("acme")


@pytest.fixture
def pool() -> PoolId:
    return make_pool("p", max_attempts=1, slots=200)


def die(tenant: TenantId, pool: PoolId, count: int) -> list[TaskId]:
    """So many tasks that died."""
    tasks = submit_tasks(tenant, count)
    worker = HandWorker({pool: count})
    worker.fail(worker.dispatch().leased)
    return tasks


def asked(text: str) -> Filter:
    found = parse_filter(text)
    assert isinstance(found, Filter)
    return found


def start(kind: OperationKind, text: str = "", tenant: TenantId | None = None, **wanted: object) -> int:
    settings: dict[str, object] = {"rate": 1000.0} | wanted
    everything = Wanted(kind, narrow(kind, asked(text)), **settings)  # type: ignore[arg-type]  # any setting
    return start_operation(everything, tenant, ADA)


def pass_time(operation: int, seconds: float = 3600.0) -> None:
    """As if so much time had passed since anybody worked on it."""
    past = timedelta(seconds=seconds)
    Operation.objects.filter(pk=operation).update(
        starts_at=F("starts_at") - past, worked_at=F("worked_at") - past, created_at=F("created_at") - past
    )


def work(operation: int, rounds: int = 3) -> list[Worked]:
    """Rounds with enough time between them for the rate to matter no more."""
    done = []
    for _ in range(rounds):
        pass_time(operation)
        done.append(work_operations())
    return done


def outcomes(operation: int) -> dict[int, tuple[str | None, str | None]]:
    rows = OperationItem.objects.filter(operation_id=operation)
    return {row.task_id: (row.outcome, row.why) for row in rows}


def test_a_replay_does_exactly_the_frozen_set(acme: TenantId, pool: PoolId) -> None:
    tasks = die(acme, pool, 5)
    operation = start(K.REPLAY, "tenant:acme")
    later = die(acme, pool, 2)
    replay(tasks[0], None, actor="bob")
    discard(tasks[1], None, ADA)
    work(operation)
    assert outcomes(operation) == {
        tasks[0]: ("skipped", "active"),
        tasks[1]: ("skipped", "discarded"),
        **dict.fromkeys(tasks[2:], ("applied", None)),
    }
    assert [state_of(task) for task in tasks[2:]] == ["ready"] * 3
    assert [state_of(task) for task in later] == ["dead_lettered"] * 2, "what died later is not in the set"
    row = load_operation(operation, None)
    assert (row.row.state, row.row.total, row.row.applied, row.row.skipped) == ("done", 5, 3, 2)
    assert {why.value: n for why, n in row.skips.items()} == {"active": 1, "discarded": 1}
    assert not work_operations().busy


def test_nothing_happens_before_its_time_and_taken_back_it_has_no_effect(acme: TenantId, pool: PoolId) -> None:
    (task,) = die(acme, pool, 1)
    operation = start(K.REPLAY)
    assert work_operations() == Worked(0, busy=False)
    change_operation(operation, Change.ABORT, None, ADA)
    work(operation)
    assert state_of(task) == "dead_lettered"
    assert outcomes(operation) == {task: (None, None)}


def test_pause_abort_and_resume_go_on_where_it_stood(acme: TenantId, pool: PoolId) -> None:
    tasks = die(acme, pool, 10)
    operation = start(K.REPLAY, rate=4.0)
    work(operation, 2)
    assert sum(state_of(task) == "ready" for task in tasks) == 4
    for change in (Change.PAUSE, Change.ABORT):
        change_operation(operation, change, None, ADA)
        assert not work(operation)[-1].busy
        assert sum(state_of(task) == "ready" for task in tasks) == 4
        change_operation(operation, Change.RESUME, None, ADA)
    work(operation, 5)
    assert [state_of(task) for task in tasks] == ["ready"] * 10
    assert {task.replays for task in Task.objects.all()} == {1}
    with pytest.raises(Conflict, match="is done"):
        change_operation(operation, Change.ABORT, None, ADA)
    actions = AuditEvent.objects.filter(subject=f"operation:{operation}").order_by("id")
    assert [event.action for event in actions] == [
        "operation.replay", "operation.pause", "operation.resume", "operation.abort", "operation.resume",
    ]  # fmt: skip


def test_the_rate_holds(acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 10)
    operation = start(K.REPLAY, rate=2.0)
    pass_time(operation, 11.0)
    work_operations()
    applied = []
    for _ in range(4):
        pass_time(operation, 1.0)
        applied.append(work_operations().applied)
    assert applied == [2, 2, 2, 2]


def test_cancel_stops_what_waits_and_what_runs(acme: TenantId, pool: PoolId) -> None:
    worker = HandWorker({pool: 1})
    (running,) = submit_tasks(acme, 1)
    worker.start()
    waiting = submit_tasks(acme, 3)
    operation = start(K.CANCEL, "pool:p")
    worker.succeed([])
    work(operation)
    assert [state_of(task) for task in waiting] == ["cancelled"] * 3
    assert state_of(running) == "running"
    assert set(outcomes(operation).values()) == {("applied", None)}


def test_discarded_ones_are_out_of_sight_can_be_restored_and_are_forgotten_after_a_week(
    acme: TenantId, pool: PoolId
) -> None:
    tasks = die(acme, pool, 3)
    work(start(K.DISCARD))
    assert preview_operation(K.REPLAY, Filter(), None).count == 0
    restored = start(K.RESTORE, f"task:{tasks[0]}")
    work(restored)
    assert preview_operation(K.REPLAY, Filter(), None).count == 1
    DeadLetter.objects.filter(task_id=tasks[1]).update(discarded_at=F("discarded_at") - timedelta(days=8))
    prune(Keep(30 * 86_400.0), rest=lambda: None)
    assert set(Task.objects.values_list("id", flat=True)) == {tasks[0], tasks[2]}


def test_the_same_key_makes_one_operation(acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 2)
    assert start(K.REPLAY, key="once") == start(K.REPLAY, key="once")
    assert Operation.objects.count() == 1
    assert OperationItem.objects.count() == 2


def test_more_than_was_shown_is_a_conflict_and_less_is_not(acme: TenantId, pool: PoolId) -> None:
    tasks = die(acme, pool, 3)
    with pytest.raises(Conflict, match="3 tasks match now, and 2 were shown"):
        start(K.REPLAY, shown=2)
    assert not Operation.objects.exists()
    seen = preview_operation(K.REPLAY, Filter(), None)
    replay(tasks[0], None, actor="bob")
    die(acme, pool, 4)
    operation = start(K.REPLAY, shown=seen.count, as_of=seen.as_of)
    assert set(outcomes(operation)) == set(tasks[1:])


def test_what_is_not_clear_is_refused(acme: TenantId, pool: PoolId) -> None:
    with pytest.raises(Refused, match="No task matches"):
        start(K.REPLAY)
    die(acme, pool, 101)
    with pytest.raises(Refused, match="Type 101"):
        start(K.REPLAY, shown=101)
    with pytest.raises(Refused, match="There is no tenant 'nobody'"):
        start(K.REPLAY, "tenant:nobody")
    with pytest.raises(Refused, match="Say why"):
        start_operation(Wanted(K.REPLAY, asked("state:dead"), 1.0), None, Author("ada"))
    assert not Operation.objects.exists()
    assert start(K.REPLAY, shown=101, typed="101")


def test_a_tenant_touches_and_sees_only_its_own(acme: TenantId, pool: PoolId) -> None:
    other = make_tenant("other")
    mine, theirs = die(acme, pool, 1), die(other, pool, 1)
    operation = start(K.REPLAY, tenant=acme)
    assert set(outcomes(operation)) == set(mine)
    with pytest.raises(Refused, match="There is no tenant 'other'"):
        start(K.REPLAY, "tenant:other", acme)
    with pytest.raises(NotFound):
        load_operation(operation, other)
    with pytest.raises(NotFound):
        change_operation(operation, Change.ABORT, other, ADA)
    assert state_of(theirs[0]) == "dead_lettered"


def test_like_deaths_are_counted_together(acme: TenantId, pool: PoolId) -> None:
    tasks = die(acme, pool, 3)
    fold_dead()
    (group,) = DeadGroup.objects.all()
    assert (group.n, group.shape, group.failure_class) == (3, "it broke", "error")
    replay(tasks[0], None, actor="bob")
    discard(tasks[1], None, ADA)
    fold_dead()
    group.refresh_from_db()
    assert group.n == 1
    restore(tasks[1], None, ADA)
    fold_dead()
    group.refresh_from_db()
    assert group.n == DeadLetter.objects.filter(discarded_at=None).count() == 2


def test_one_alone_is_discarded_once(acme: TenantId, pool: PoolId) -> None:
    (task,) = die(acme, pool, 1)
    discard(task, None, ADA)
    with pytest.raises(Conflict, match="was discarded already"):
        discard(task, None, ADA)
    restore(task, None, ADA)
    with pytest.raises(Conflict, match="was not discarded"):
        restore(task, None, ADA)
    (waiting,) = submit_tasks(acme, 1)
    with pytest.raises(Conflict, match="no dead letter: it is ready"):
        discard(waiting, None, ADA)
