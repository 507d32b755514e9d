"""Makes operations on many tasks, and changes them at an operator's wish.

The set is frozen when the operation is made: the ids of the tasks that match its filter as of the moment at which they
were shown. It never grows, whatever comes later. What is done to each task is `services.operating`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.policy.filters import Filter, FilterFault, format_filter, refusal
from scheduler.policy.operations import (
    CHANGES,
    ITEMS_MAX,
    START_AFTER_S,
    Asked,
    Change,
    OperationKind,
    OperationState,
    faults_in_operation,
    may_change,
)
from scheduler.policy.types import TenantId
from scheduler.services.again import again
from scheduler.services.changes import Author, record, refuse
from scheduler.services.idempotency import KEY_CHARS_MAX
from scheduler.store import filters as filter_store
from scheduler.store import operations as store
from scheduler.store.dispatch import load_now

CLOCK_SLACK_S: Final = 60.0
"""How far ahead of the database's clock a moment may be that somebody says they looked at."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done to which tasks. `as_of` (Unix seconds; None: now) is when they were looked at.

    `shown` is how many there were then, `typed` the number as it was typed; `shown` None: as many as there are. `key`
    makes a repetition harmless.
    """

    kind: OperationKind
    filter: Filter
    rate: float
    as_of: float | None = None
    shown: int | None = None
    typed: str = ""
    key: str | None = None


@again
def start_operation(wanted: Wanted, tenant: TenantId | None, author: Author) -> int:
    """Freeze the set and make the operation; it begins in ten seconds. Returns its id, also that of a repetition.

    Raises Refused for what is not clear, Conflict when more match than were shown.
    """
    _check_key(wanted.key)
    with transaction.atomic():
        now = load_now()
        as_of = min(now if wanted.as_of is None else wanted.as_of, now)
        search = filter_store.compile_filter(wanted.filter, tenant=tenant, as_of=as_of, frozen=True)
        if isinstance(search, FilterFault):
            raise refusal(search)
        if wanted.shown is not None:
            refuse(faults_in_operation(Asked(wanted.rate, author.reason, wanted.shown, wanted.typed)), code="unclear")
        operation = store.add(_new(wanted, tenant, author, as_of))
        if operation is None:
            return store.find_by_key(author.actor[:200], wanted.key or "") or 0
        total = filter_store.freeze(search, operation, rows_max=ITEMS_MAX + 1)
        _check_total(wanted, author, total)
        store.set_total(operation, total)
        said = {"filter": format_filter(wanted.filter), "tasks": total, "rate": wanted.rate}
        record(author, f"operation.{wanted.kind}", f"operation:{operation}", after=said)
    return operation


def _new(wanted: Wanted, tenant: TenantId | None, author: Author, as_of: float) -> store.NewOperation:
    return store.NewOperation(
        kind=wanted.kind,
        filter=format_filter(wanted.filter),
        tenant=tenant,
        as_of=as_of,
        actor=author.actor[:200],
        source=author.source,
        reason=author.reason,
        key=wanted.key,
        rate=wanted.rate,
        after_s=START_AFTER_S,
    )


def _check_total(wanted: Wanted, author: Author, total: int) -> None:
    if wanted.shown is not None and total > wanted.shown:
        detail = f"{total:,} tasks match now, and {wanted.shown:,} were shown. Look at them again."
        raise Conflict(detail, code="more_match", errors=(FieldError(("filter",), detail),))
    typed = str(total) if wanted.shown is None else wanted.typed
    shown = total if wanted.shown is None or not total else wanted.shown
    refuse(faults_in_operation(Asked(wanted.rate, author.reason, shown, typed)), code="unclear")


def _check_key(key: str | None) -> None:
    if key is not None and not (0 < len(key) <= KEY_CHARS_MAX and key.isprintable() and key.isascii()):
        detail = f"A key has 1 to {KEY_CHARS_MAX} printable ASCII characters."
        raise Refused(detail, code="bad_key", errors=(FieldError(("key",), detail),))


@again
def change_operation(operation: int, change: Change, tenant: TenantId | None, author: Author) -> OperationState:
    """Pause, resume or abort an operation of `tenant` (None: of anyone). Raises NotFound; Conflict with its state."""
    with transaction.atomic():
        before = store.lock(operation, tenant)
        if before is None:
            raise NotFound(f"There is no operation {operation}.", code="unknown_operation")
        if not may_change(change, before):
            raise Conflict(f"Operation {operation} is {before}; it cannot be changed so.", code="operation_state")
        after = CHANGES[change][1]
        store.change(operation, after)
        states = {"state": before.value}, {"state": after.value}
        record(author, f"operation.{change}", f"operation:{operation}", before=states[0], after=states[1])
    return after
