"""Claims, commits and abandons effects of runs on the world outside, under the lease of the step that makes them.

The claim is written before the effect and the receipt after it. A claimer whose lease has ended can do neither: its
effect may have been made, and whoever comes next is told so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, Refused
from scheduler.policy.payload import fault_in_text
from scheduler.policy.receipts import Claim, ClaimAnswer, ClaimState, decide_claim, downstream_key
from scheduler.policy.runs import RunState
from scheduler.policy.types import LeaseId, RunId, TenantId
from scheduler.services.again import again
from scheduler.services.runs import check_json
from scheduler.store import receipts as store
from scheduler.store import runs as run_store

RECEIPT_BYTES_MAX: Final = 65_536
CHECKPOINT_BYTES_MAX: Final = 1_048_576
NAME_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to a claim. `idempotency_key` goes to whoever makes the effect; `receipt` (JSON text) is what came."""

    answer: ClaimAnswer
    idempotency_key: str
    receipt: str | None = None


@again
def claim(run: RunId | None, step: str, fingerprint: str, *, lease: LeaseId, tenant: TenantId | None) -> Claimed:
    """Ask to make an effect, once per (run, step), under a lease of that run's (None: whichever run's it is).

    Raises Conflict when the lease is not current or the run was killed, Refused when the step was claimed for something
    else.
    """
    _check(step, "step")
    _check(fingerprint, "fingerprint")
    with transaction.atomic():
        holder = _hold(lease, run, tenant)
        run = holder.run
        if holder.run_state is RunState.KILLED:
            raise Conflict(f"The run {run} was killed: begin nothing more.", code="run_killed")
        key = downstream_key(run, step)
        if store.add_claim(run, step, fingerprint=fingerprint, key=key, lease=lease):
            return Claimed(ClaimAnswer.NEW, key)
        known = store.lock(run, step)
        assert known is not None  # noqa: S101 - receipts are never deleted, and the insertion found one
        if known.fingerprint != fingerprint:
            detail = f"The step {step!r} was claimed with another fingerprint; name other effects differently."
            raise Refused(detail, code="fingerprint_differs", errors=(FieldError(("fingerprint",), detail),))
        lives = known.lease == lease or store.is_current(known.lease)
        answer = decide_claim(Claim(known.state, known.lease, lives, known.unsure), lease)
        if answer in (ClaimAnswer.NEW, ClaimAnswer.UNKNOWN):
            store.take_over(run, step, lease, unsure=answer is ClaimAnswer.UNKNOWN)
        return Claimed(answer, known.idempotency_key, known.receipt)


@again
def commit(run: RunId | None, step: str, receipt: str, *, lease: LeaseId, tenant: TenantId | None) -> str:
    """Put down what came of the effect (JSON text), under the lease that claimed it; repeating it changes nothing.

    Returns the receipt that stands: the first one. Raises Conflict for a lease that is not current or has no claim.
    """
    check_json(receipt, what="receipt", bytes_max=RECEIPT_BYTES_MAX)
    with transaction.atomic():
        run = _hold(lease, run, tenant).run
        if store.commit(run, step, lease, receipt):
            return receipt
        known = store.lock(run, step)
        if known is not None and known.state is ClaimState.DONE and known.receipt is not None:
            return known.receipt
        raise _no_claim(step)


@again
def abandon(run: RunId | None, step: str, *, lease: LeaseId, tenant: TenantId | None) -> None:
    """Give up a claim, its effect not made. Repeating it changes nothing. Raises Conflict like `commit`."""
    with transaction.atomic():
        run = _hold(lease, run, tenant).run
        if store.abandon(run, step, lease):
            return
        known = store.lock(run, step)
        if known is None or known.state is not ClaimState.ABANDONED or known.lease != lease:
            raise _no_claim(step)


@again
def save_checkpoint(
    run: RunId | None, text: str, *, lease: LeaseId, tenant: TenantId | None, after: int | None = None
) -> int:
    """Write where a run can be taken up (JSON text), under a lease of its (`run` None: whichever run's it is).

    Returns the new version. Raises Conflict for a lease that is not current, and when `after` is not the version there.
    """
    check_json(text, what="checkpoint", bytes_max=CHECKPOINT_BYTES_MAX)
    with transaction.atomic():
        holder = _hold(lease, run, tenant)
        version = run_store.save_checkpoint(holder.run, text, task=holder.task, after=after)
        if version is None:
            current = run_store.load_checkpoint(holder.run)
            at = 0 if current is None else current.version
            detail = f"You wrote after version {after}, and the current one is {at}. Read it first."
            raise Conflict(detail, code="version_conflict", errors=(FieldError(("version",), detail),))
        return version


def _hold(lease: LeaseId, run: RunId | None, tenant: TenantId | None) -> store.Holder:
    holder = store.hold_lease(lease, tenant=tenant)
    if holder is not None and run in (None, holder.run):
        return holder
    if holder is None and run is None and store.is_current(lease):
        raise Refused("This task is no step of a run: submit it with the run's id.", code="not_a_step")
    detail = f"The lease {lease} is not current, or not of this run: whatever it was to do, another may be doing."
    raise Conflict(detail, code="stale_lease")


def _no_claim(step: str) -> Conflict:
    return Conflict(f"This lease has no claim on the step {step!r}; claim it first.", code="stale_lease")


def _check(text: str, what: str) -> None:
    said = fault_in_text(text) or ("is empty" if not text else None)
    if said is None and len(text) > NAME_CHARS_MAX:
        said = f"has more than {NAME_CHARS_MAX} characters"
    if said is not None:
        raise Refused(f"The {what} {said}.", code=f"bad_{what}", errors=(FieldError((what,), f"It {said}."),))
