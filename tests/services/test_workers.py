"""Remote workers as the services know them: what one is given, keeps and may speak for."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from scheduler.models import Lease, Worker
from scheduler.policy.remote import Claim, RemoteWorker
from scheduler.policy.types import LeaseId, Outcome, WorkerId
from scheduler.services import workers
from scheduler.services.settle import Report, reap, settle
from scheduler.services.tokens import Principal
from tests.support.work import HandWorker, make_pool, make_tenant, state_of, submit_tasks

pytestmark = pytest.mark.usefixtures("live_database")

GATEWAY = WorkerId(str(uuid.uuid4()))


def come_back(caller: Principal, known: RemoteWorker, *, held: list[int]) -> RemoteWorker:
    """The same worker again, after its connection broke."""
    return workers.register(
        caller, owner="me", slots={"p": 2}, labels={"gpu": "yes"}, worker=known.id, held=held, gateway=GATEWAY
    )


def test_a_lease_is_claimed_once_kept_by_its_own_and_settled() -> None:
    acme, globex = make_tenant(), make_tenant("globex")
    pool = make_pool(executor="remote")
    caller = Principal(acme, "acme", frozenset({"work"}), None, "t")
    known = workers.register(caller, owner="me", slots={"p": 2}, labels={"gpu": "yes"}, gateway=GATEWAY)
    assert known.declared == {pool: 2}
    [task] = submit_tasks(acme, payload='{"n": 1}', tags={"a": "b"}, labels={"gpu": "yes"})
    submit_tasks(globex)
    leader = HandWorker({})
    assert [each.worker for each in leader.dispatch().leased] == [known.id]
    [given] = workers.claim(GATEWAY)
    assert (given.pool, given.tenant, given.task.task, given.task.payload) == ("p", "acme", task, '{"n": 1}')
    assert (given.task.tags, given.task.attempt) == ('{"a": "b"}', 1)
    assert workers.claim(GATEWAY) == []
    lease = given.task.lease
    mine, theirs = Claim(lease, acme, None), Claim(lease, globex, None)
    elsewhere = Claim(lease, acme, frozenset({"other"}))
    assert list(workers.renew([mine])) == [lease]
    assert workers.renew([theirs]) == workers.renew([elsewhere]) == {}
    assert workers.own([mine, Claim(LeaseId(lease + 9), None, None)]) == {lease}
    assert workers.own([theirs, elsewhere]) == set()
    assert come_back(caller, known, held=[lease]).strays == ()
    assert come_back(caller, known, held=[lease + 9]).strays == (lease,)
    beat = workers.beat(GATEWAY, [known.id])
    assert (beat.known, [each.lease for each in beat.held]) == ({known.id: False}, [lease])
    settle([Report(lease, Outcome.SUCCEEDED, result="1")])
    assert state_of(task) == "succeeded"
    workers.withdraw(GATEWAY, [known.id])
    submit_tasks(acme)
    assert leader.dispatch().leased == ()


def test_who_offers_nothing_any_more_here_may_offer_elsewhere() -> None:
    acme = make_tenant()
    pool = make_pool(executor="remote")
    caller = Principal(acme, "acme", frozenset({"work"}), None, "t")
    known = workers.register(caller, owner="me", slots={"p": 2}, labels={})
    elsewhere = WorkerId(str(uuid.uuid4()))
    assert workers.offer(GATEWAY, {known.id: {pool: 2}}) == {known.id}
    assert workers.offer(elsewhere, {known.id: {pool: 1}}) == {known.id}
    assert workers.offer(GATEWAY, {known.id: {}}) == set()
    assert workers.beat(elsewhere, [known.id]).known == {known.id: False}
    assert workers.beat(GATEWAY, [known.id])[:2] == ({}, frozenset({known.id}))
    workers.withdraw(elsewhere, [known.id])
    assert workers.beat(GATEWAY, [known.id])[:2] == ({}, frozenset())


def test_a_process_that_lives_and_is_behind_is_not_taken_for_dead() -> None:
    acme = make_tenant()
    make_pool(executor="remote")
    caller = Principal(acme, "acme", frozenset({"work"}), None, "t")
    workers.register(caller, owner="me", slots={"p": 2}, labels={}, gateway=GATEWAY)
    submit_tasks(acme)
    assert len(HandWorker({}).dispatch().leased) == 1
    Lease.objects.update(started_at=Now() - timedelta(seconds=3))
    assert reap() == 0
    Worker.objects.filter(gateway_id=GATEWAY).update(seen_at=Now() - timedelta(seconds=3))
    assert reap() == 1
    Worker.objects.filter(gateway_id=GATEWAY).update(seen_at=Now())
    assert len(HandWorker({}).dispatch().leased) == 1
    Lease.objects.update(started_at=Now() - timedelta(seconds=6))
    assert reap() == 1
