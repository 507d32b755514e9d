"""Enters those who die among the dead letters, counts those that died alike, and discards and restores them.

It decides neither who dies (`policy.settlement`) nor which deaths are alike (`policy.fingerprints`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import transaction

from scheduler.errors import Conflict
from scheduler.policy.fingerprints import Death, fingerprint_of, shape_of
from scheduler.policy.operations import DIED
from scheduler.policy.retry import Failure
from scheduler.policy.types import PoolId, TaskId, TenantId
from scheduler.services.again import again
from scheduler.services.cancel import state_of
from scheduler.services.changes import Author, check_reason, record
from scheduler.store import dead as store

FOLD_MAX: Final = 5_000
"""Changes to the counts that are folded in one transaction."""


def bury(dead: Mapping[TaskId, tuple[TenantId, PoolId, Failure]]) -> None:
    """Enter tasks that have just died, in the transaction that ended them, as its last step."""
    kinds = store.load_dying(list(dead))
    burials = []
    for task, (tenant, pool, failure) in dead.items():
        if task in kinds:
            message = failure.message.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
            death = Death(tenant, pool, kinds[task], failure.failure_class.value, shape_of(message))
            number = fingerprint_of(death)
            burials.append(store.Burial(task, number, tenant, pool, death.kind, failure.failure_class.value, message))
    if burials:
        store.bury(burials)


def fold_dead() -> int:
    """Add what changed to the counts of the groups; returns how many changes. One short query when there are none."""
    with transaction.atomic():
        deltas = store.take_deltas(rows_max=FOLD_MAX)
        if deltas:
            new = store.load_new_groups(sorted({delta.fingerprint for delta in deltas}))
            if new:
                store.add_groups(new, [shape_of(group.message) for group in new])
            store.fold(deltas)
    return len(deltas)


@again
def discard(task: TaskId, tenant: TenantId | None, author: Author) -> None:
    """Take a dead letter out of sight; it can be restored for seven days. Raises NotFound, or Conflict."""
    check_reason(author)
    with transaction.atomic():
        _check_died(task, tenant)
        if not store.discard([task]):
            raise Conflict(f"Task {task} was discarded already.", code="discarded_already")
        record(author, "task.discard", f"task:{task}", before={"discarded": False}, after={"discarded": True})


@again
def restore(task: TaskId, tenant: TenantId | None, author: Author) -> None:
    """Bring a discarded dead letter back. Raises NotFound, or Conflict."""
    check_reason(author)
    with transaction.atomic():
        _check_died(task, tenant)
        if not store.restore([task]):
            raise Conflict(f"Task {task} was not discarded.", code="not_discarded")
        record(author, "task.restore", f"task:{task}", before={"discarded": True}, after={"discarded": False})


def _check_died(task: TaskId, tenant: TenantId | None) -> None:
    state = state_of(task, tenant)
    if state not in DIED:
        raise Conflict(f"Task {task} is no dead letter: it is {state}.", code="not_dead")
