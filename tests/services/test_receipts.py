"""Receipts and checkpoints on the real database: fenced by the lease, and each effect made once."""

from __future__ import annotations

import pytest

from scheduler.errors import Conflict, Refused
from scheduler.models import Lease, Receipt
from scheduler.policy.admission import RetrySettings
from scheduler.policy.receipts import ClaimAnswer
from scheduler.policy.types import LeasedTask, LeaseId, RunId, TenantId
from scheduler.reads.runs import with_runs
from scheduler.services import receipts
from scheduler.services.kill import kill_run
from scheduler.services.runs import create_run
from scheduler.services.settle import reap
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db
AT_ONCE = RetrySettings(initial_backoff_s=0.0, max_attempts=10)


class Step:
    """A step of a run whose workers die when the test says so."""

    def __init__(self, tasks: int = 1) -> None:
        self.worker = HandWorker({make_pool(slots=10): 10})
        self.tenant: TenantId = make_tenant()
        self.run: RunId = create_run(self.tenant, "{}").id
        submit_tasks(self.tenant, tasks, run=self.run, retry=AT_ONCE)

    def start(self) -> LeasedTask:
        [leased] = with_runs(self.worker.start())
        return leased

    def die(self, leased: LeasedTask) -> None:
        Lease.objects.filter(pk=leased.lease).update(expires_at="2020-01-01T00:00:00Z")
        assert reap() == 1

    def claim(self, lease: LeaseId, fingerprint: str = "refund 1017") -> receipts.Claimed:
        return receipts.claim(self.run, "refund", fingerprint, lease=lease, tenant=self.tenant)

    def commit(self, lease: LeaseId, receipt: str) -> str:
        return receipts.commit(self.run, "refund", receipt, lease=lease, tenant=self.tenant)


def attempt(step: Step, paid: dict[str, str], dies_at: str | None) -> tuple[LeasedTask, receipts.Claimed]:
    """Claim, pay, commit and save, as far as it comes."""
    leased = step.start()
    claimed = step.claim(leased.lease)
    doing = iter(("claimed", "paid", "committed", "saved"))
    while (point := next(doing, None)) is not None:
        if point == "paid" and claimed.answer is not ClaimAnswer.DONE:
            paid.setdefault(claimed.idempotency_key, f'"refund {len(paid) + 1}"')
        if point == "committed" and claimed.answer is not ClaimAnswer.DONE:
            assert step.commit(leased.lease, paid[claimed.idempotency_key]) == '"refund 1"'
        if point == "saved":
            receipts.save_checkpoint(step.run, '{"refunded": true}', lease=leased.lease, tenant=step.tenant)
        if point == dies_at:
            step.die(leased)
            break
    return leased, claimed


@pytest.mark.parametrize("point", ["claimed", "paid", "committed", "saved"])
def test_a_worker_that_dies_anywhere_refunds_once(point: str) -> None:
    step = Step()
    paid: dict[str, str] = {}
    attempt(step, paid, point)
    leased, claimed = attempt(step, paid, None)
    assert list(paid.values()) == ['"refund 1"']
    again = {"claimed": ClaimAnswer.UNKNOWN, "paid": ClaimAnswer.UNKNOWN}.get(point, ClaimAnswer.DONE)
    assert claimed.answer is again
    assert leased.checkpoint == ('{"refunded": true}' if point == "saved" else None)
    assert step.claim(leased.lease).receipt == '"refund 1"'


def test_a_second_step_waits_for_the_first_and_gets_its_receipt() -> None:
    step = Step(tasks=2)
    first, second = (leased.lease for leased in step.worker.start())
    assert step.claim(first).answer is ClaimAnswer.NEW
    assert step.claim(first).answer is ClaimAnswer.NEW, "its answer may have been lost"
    assert step.claim(second).answer is ClaimAnswer.IN_PROGRESS
    with pytest.raises(Conflict) as early:
        step.commit(second, '"mine"')
    assert early.value.code == "stale_lease"
    assert step.commit(first, '"first"') == '"first"'
    assert step.commit(first, '"again"') == '"first"'
    done = step.claim(second)
    assert (done.answer, done.receipt) == (ClaimAnswer.DONE, '"first"')
    with pytest.raises(Refused) as differs:
        step.claim(second, "refund 1018")
    assert differs.value.code == "fingerprint_differs"


def test_an_abandoned_claim_is_free_for_the_next() -> None:
    step = Step(tasks=2)
    first, second = (leased.lease for leased in step.worker.start())
    key = step.claim(first).idempotency_key
    for _ in range(2):
        receipts.abandon(step.run, "refund", lease=first, tenant=step.tenant)
    taken = step.claim(second)
    assert (taken.answer, taken.idempotency_key) == (ClaimAnswer.NEW, key)
    with pytest.raises(Conflict):
        receipts.abandon(step.run, "refund", lease=first, tenant=step.tenant)


def test_a_stale_lease_claims_commits_and_writes_nothing() -> None:
    step = Step()
    dead = step.start()
    step.claim(dead.lease)
    step.die(dead)
    alive = step.start()
    for late in (
        lambda: step.claim(dead.lease),
        lambda: step.commit(dead.lease, "1"),
        lambda: receipts.save_checkpoint(step.run, "1", lease=dead.lease, tenant=step.tenant),
        lambda: receipts.save_checkpoint(RunId(step.run + 1), "1", lease=alive.lease, tenant=step.tenant),
        lambda: receipts.save_checkpoint(step.run, "1", lease=alive.lease, tenant=make_tenant("other")),
    ):
        with pytest.raises(Conflict) as stale:
            late()
        assert stale.value.code == "stale_lease"
    assert Receipt.objects.get().lease_id == dead.lease


def test_checkpoints_have_versions_and_a_writer_may_ask_for_the_one_it_read() -> None:
    step = Step()
    lease = step.start().lease

    def save(text: str, after: int | None = None) -> int:
        return receipts.save_checkpoint(step.run, text, lease=lease, tenant=step.tenant, after=after)

    assert (save("1", after=0), save("2", after=1), save("3")) == (1, 2, 3)
    with pytest.raises(Conflict) as late:
        save("4", after=2)
    assert late.value.code == "version_conflict"
    with pytest.raises(Refused) as large:
        save('"' + "x" * receipts.CHECKPOINT_BYTES_MAX + '"')
    assert large.value.code == "checkpoint_too_large"


def test_a_killed_run_begins_no_effect_but_puts_down_what_was_made() -> None:
    step = Step(tasks=2)
    first, second = (leased.lease for leased in step.worker.start())
    step.claim(first)
    kill_run(step.run, step.tenant, actor="ada")
    with pytest.raises(Conflict) as killed:
        step.claim(second)
    assert killed.value.code == "run_killed"
    assert step.commit(first, '"made"') == '"made"'
