"""Effects of runs on the world outside, as they are claimed and committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.policy.receipts import ClaimState
from scheduler.policy.runs import RunState
from scheduler.policy.types import LeaseId, RunId, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("receipts.sql")


class Holder(NamedTuple):
    """An attempt that is a step of a run."""

    task: TaskId
    tenant: TenantId
    run: RunId
    run_state: RunState
    told_to_stop: bool


class ReceiptRow(NamedTuple):
    """An effect on record. `receipt` is JSON text."""

    fingerprint: str
    state: ClaimState
    idempotency_key: str
    lease: LeaseId
    unsure: bool
    receipt: str | None


@dataclass(frozen=True, slots=True)
class ListedReceipt:
    """An effect as it is shown. Times are Unix seconds."""

    step: str
    state: ClaimState
    idempotency_key: str
    lease: LeaseId
    unsure: bool
    receipt: str | None
    claimed_at: float
    committed_at: float | None


def hold_lease(lease: LeaseId, *, tenant: TenantId | None) -> Holder | None:
    """Keep a step's attempt from being ended until this transaction is over; None when it is not current."""
    row = queries.fetch_one(_SQL["hold_lease"], {"lease": lease, "tenant": tenant})
    if row is None:
        return None
    task, tenant_id, run, state, told_to_stop = row
    return Holder(TaskId(task), TenantId(tenant_id), RunId(run), RunState(state), told_to_stop)


def add_claim(run: RunId, step: str, *, fingerprint: str, key: str, lease: LeaseId) -> bool:
    """Claim an effect; False when it was claimed before."""
    params = {"run": run, "step": step, "fingerprint": fingerprint, "key": key, "lease": lease}
    return queries.fetch_one(_SQL["add_claim"], params) is not None


def lock(run: RunId, step: str) -> ReceiptRow | None:
    """The effect on record, locked."""
    row = queries.fetch_one(_SQL["lock_receipt"], {"run": run, "step": step})
    return None if row is None else ReceiptRow(row[0], ClaimState(row[1]), *row[2:])


def is_current(lease: LeaseId) -> bool:
    """Whether that attempt still runs."""
    row = queries.fetch_one(_SQL["is_current"], {"lease": lease})
    assert row is not None  # noqa: S101 - EXISTS gives a row
    return bool(row[0])


def take_over(run: RunId, step: str, lease: LeaseId, *, unsure: bool) -> None:
    """Claim a locked effect anew."""
    queries.run(_SQL["take_over"], {"run": run, "step": step, "lease": lease, "unsure": unsure})


def commit(run: RunId, step: str, lease: LeaseId, receipt: str) -> bool:
    """Put down the receipt of an effect that this attempt claimed; False when it has no claim on it."""
    return queries.run(_SQL["commit_receipt"], {"run": run, "step": step, "lease": lease, "receipt": receipt}) == 1


def abandon(run: RunId, step: str, lease: LeaseId) -> bool:
    """Give up this attempt's claim; False when it has none."""
    return queries.run(_SQL["abandon_claim"], {"run": run, "step": step, "lease": lease}) == 1


@asked
def load(run: RunId, *, rows_max: int) -> Question[list[ListedReceipt]]:
    """The run's effects, as they were claimed."""
    return Question(
        _SQL["list_receipts"],
        {"run": run, "rows_max": rows_max},
        lambda rows: [ListedReceipt(row[0], ClaimState(row[1]), *row[2:]) for row in rows],
    )
