"""Graphs under real concurrency: no wake-up is lost or doubled, and nobody waits for whoever waits for him."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from django.db import connection, transaction

from scheduler.errors import CronoqError
from scheduler.models import Lease, Task, TaskEdge, TaskGroup, TaskPayload
from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.graph import Dependency, EdgeCondition, JoinPolicy, is_met
from scheduler.policy.retry import Failure
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import FailureClass, LeasedTask, LeaseId, Outcome, PoolId, TaskId, TenantId
from scheduler.services.cancel import cancel
from scheduler.services.graphs import tend
from scheduler.services.settle import Report, settle
from scheduler.services.submit import submit, submit_batch
from scheduler.store import overview
from tests.conftest import LiveDatabase
from tests.support.work import HandWorker, make_pool, make_tenant

pytestmark = pytest.mark.usefixtures("live_database")

PLAIN = Submission("{}", pool="p", retry=RetrySettings(max_attempts=1))


def after(*keys: str, on: EdgeCondition = EdgeCondition.SUCCESS) -> tuple[Dependency, ...]:
    return tuple(Dependency(key, on=on) for key in keys)


def at_once(*jobs: Callable[[], object]) -> None:
    """Do these at the same time, each on a connection of its own; whatever one raises fails the test."""
    faults: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], object]) -> None:
        try:
            start.wait(20)
            job()
        except BaseException as fault:  # noqa: BLE001 - told below
            faults.append(fault)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


@pytest.fixture
def world() -> tuple[TenantId, PoolId, HandWorker]:
    tenant, pool = make_tenant(), make_pool(slots=500)
    return tenant, pool, HandWorker({pool: 500})


def finish(leased: Sequence[LeasedTask], *, ok: bool = True) -> None:
    failure = None if ok else Failure(FailureClass.ERROR, "it broke")
    settle([Report(x.lease, Outcome.SUCCEEDED if ok else Outcome.FAILED, failure, result="1") for x in leased])


def test_a_parent_that_ends_while_its_child_is_submitted_wakes_it_once(
    world: tuple[TenantId, PoolId, HandWorker],
) -> None:
    tenant, _, worker = world
    rounds = 60
    submit_batch(tenant, [replace(PLAIN, key=f"p{n}") for n in range(rounds)])
    leased = {x.key: x for x in worker.start()}
    meet = threading.Barrier(2)

    def submit_children() -> None:
        for n in range(rounds):
            meet.wait(20)
            submit(tenant, replace(PLAIN, key=f"c{n}", after=after(f"p{n}")))

    def end_parents() -> None:
        for n in range(rounds):
            meet.wait(20)
            finish([leased[f"p{n}"]])

    at_once(submit_children, end_parents)
    while tend():
        pass
    assert not Task.objects.filter(state="blocked").exists(), "a wake-up was lost"
    started = worker.start()
    assert len(started) == rounds
    assert {x.attempt for x in started} == {1}
    counted = {key: n for key, n in overview.load_counts().items() if n and key[2] != "started"}
    assert counted == overview.recount(), "a task was moved twice"


def test_parents_that_end_at_the_same_time_wake_their_child_without_the_sweep(
    world: tuple[TenantId, PoolId, HandWorker],
) -> None:
    tenant, _, worker = world
    maps = [f"m{n}" for n in range(48)]
    for graph in range(4):
        own = [f"{graph}{key}" for key in maps]
        submit_batch(
            tenant, [*(replace(PLAIN, key=k) for k in own), replace(PLAIN, key=f"{graph} reduce", after=after(*own))]
        )
    leased = worker.start()
    random.Random(1).shuffle(leased)

    def finish_two_by_two(part: Sequence[LeasedTask]) -> None:
        for n in range(0, len(part), 2):
            finish(part[n : n + 2])

    at_once(*(partial(finish_two_by_two, leased[n::6]) for n in range(6)))
    assert Task.objects.filter(key__endswith="reduce", state="ready").count() == 4


def test_an_open_transaction_that_names_a_task_does_not_hold_up_its_settlement(
    world: tuple[TenantId, PoolId, HandWorker],
) -> None:
    tenant, _, worker = world
    submit(tenant, replace(PLAIN, key="parent"))
    leased = worker.start()
    submitted, settled = threading.Event(), threading.Event()

    def keep_open() -> None:
        with transaction.atomic():
            submit(tenant, replace(PLAIN, key="child", after=after("parent")))
            submitted.set()
            assert settled.wait(20)

    def end_meanwhile() -> None:
        assert submitted.wait(20)
        finish(leased)
        settled.set()

    at_once(keep_open, end_meanwhile)
    assert Task.objects.get(key="child").state == "ready", "whoever committed last saw the other"


def test_groups_that_fail_while_planners_start_their_members_are_stopped_whole(live_database: LiveDatabase) -> None:
    tenant, pool = make_tenant(), make_pool(slots=12)
    for n in range(12):
        member = replace(PLAIN, group=f"g{n}", join=JoinPolicy.FAIL_FAST)
        submit_batch(tenant, [member] * 30)
    workers = [HandWorker({pool: 4}) for _ in range(3)]

    def churn(worker: HandWorker, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(25):
            for leased in worker.start():
                finish([leased], ok=chance.random() < 0.8)

    at_once(*(partial(churn, worker, n) for n, worker in enumerate(workers)))
    while tend():
        pass
    failed = set(TaskGroup.objects.exclude(cancelled_at=None).values_list("pk", flat=True))
    assert failed
    members = TaskPayload.objects.filter(group_id__in=failed).values_list("task_id", flat=True)
    assert not Task.objects.filter(pk__in=members, state__in=["ready", "retrying"]).exists()
    assert not Lease.objects.filter(task_id__in=members, cancel_requested_at=None).exists()


@pytest.mark.parametrize("seed", range(3))
def test_random_graphs_end_as_their_edges_say(seed: int, world: tuple[TenantId, PoolId, HandWorker]) -> None:
    tenant, pool, _ = world
    chance = random.Random(seed)
    size = 150
    nodes = []
    for n in range(size):
        parents = {chance.randrange(n) for _ in range(chance.randint(0, 3))} if n else set()
        edges = tuple(Dependency(f"t{p}", on=chance.choice(list(EdgeCondition))) for p in sorted(parents))
        nodes.append(replace(PLAIN, key=f"t{n}", after=edges))
    chance.shuffle(nodes)
    ids = [answer.id for answer in submit_batch(tenant, nodes)]
    workers = [HandWorker({pool: 100}) for _ in range(3)]

    def work(worker: HandWorker, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            for leased in worker.start():
                finish([leased], ok=chance.random() < 0.7)

    def stop_some() -> None:
        for task in random.Random(seed).sample(ids, 12):
            try:
                cancel(TaskId(task), tenant, actor="ada")
            except CronoqError:
                continue

    at_once(*(partial(work, worker, seed * 10 + n) for n, worker in enumerate(workers)), stop_some)
    # What was told to stop and is still held, and what the last round let go.
    while leases := list(Lease.objects.values_list("lease_id", flat=True)):
        settle([Report(LeaseId(lease), Outcome.SUCCEEDED, result="1") for lease in leases])
        workers[0].start()
    check_against_edges()


def check_against_edges() -> None:
    """Everything has ended; skipped is what had an edge that its parent did not meet, and nothing else."""
    states = {task: TaskState(state) for task, state in Task.objects.values_list("pk", "state")}
    assert set(states.values()) <= TERMINAL
    assert not TaskEdge.objects.filter(met=None).exists()
    for task, state in states.items():
        verdicts = {
            is_met(EdgeCondition(on), states[parent or 0])
            for on, parent in TaskEdge.objects.filter(child_id=task).values_list("condition", "parent_id")
        }
        if state is TaskState.SKIPPED:
            assert False in verdicts
        elif state is not TaskState.CANCELLED:
            assert verdicts <= {True}
