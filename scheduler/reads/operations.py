"""Operations as people and programs see them: what one would do, how far one is, and what became of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.filters import Filter, FilterFault, refusal
from scheduler.policy.operations import ITEMS_MAX, OperationKind, Skip, narrow
from scheduler.policy.types import TenantId
from scheduler.store import dead as dead_store
from scheduler.store import filters as filter_store
from scheduler.store import operations as store
from scheduler.store.dead import ListedRow
from scheduler.store.dispatch import load_now
from scheduler.store.operations import ItemRow, OperationRow

__all__ = [
    "ItemRow",
    "OperationDetail",
    "OperationRow",
    "Preview",
    "list_operations",
    "load_operation",
    "operation_items",
    "preview_operation",
]

SAMPLE: Final = 5
ID_MAX: Final = 2**63 - 1
COUNT_WITHIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Preview:
    """What an operation would be done to: `filter` as it will be used, `count` up to one more than may be at once.

    `as_of` is the moment of the look, in Unix seconds; the operation leaves out what came after it.
    """

    kind: OperationKind
    filter: Filter
    count: int
    sample: tuple[ListedRow, ...]
    as_of: float


@dataclass(frozen=True, slots=True)
class OperationDetail:
    """An operation, why tasks were skipped, and the moment of the look in Unix seconds."""

    row: OperationRow
    skips: Mapping[Skip, int]
    now: float


def preview_operation(kind: OperationKind, asked: Filter, tenant: TenantId | None) -> Preview:
    """Look at what matches, and do nothing. Raises Refused for a name that nobody has, or if looking takes too long."""
    now, wanted = load_now(), narrow(kind, asked)
    search = filter_store.compile_filter(wanted, tenant=tenant, as_of=now, frozen=True)
    if isinstance(search, FilterFault):
        raise refusal(search)
    count = filter_store.count_within(search, count_max=ITEMS_MAX + 1, within_s=COUNT_WITHIN_S)
    if count is None:
        says = f"It takes over {COUNT_WITHIN_S:g} s to look through what this may match; name a tenant, pool or state."
        raise Refused(says, code="too_wide", errors=(FieldError(("filter",), says),))
    places = filter_store.find(search, bound=None, back=False, look_max=ID_MAX, rows_max=SAMPLE) if count else []
    return Preview(kind, wanted, count, tuple(dead_store.load_listed([each.task for each in places])), now)


def list_operations(tenant: TenantId | None, *, before: int | None, rows_max: int) -> list[OperationRow]:
    """Operations of `tenant` (None: of anyone), newest first, from below the id `before`."""
    return store.load_page(tenant, before=before, rows_max=rows_max)


def load_operation(operation: int, tenant: TenantId | None) -> OperationDetail:
    """An operation of `tenant` (None: of anyone). Raises NotFound."""
    row = store.load(operation, tenant) if 0 < operation <= ID_MAX else None
    if row is None:
        raise NotFound(f"There is no operation {operation}.", code="unknown_operation")
    return OperationDetail(row, store.count_skips(operation) if row.skipped else {}, load_now())


def operation_items(
    operation: int, tenant: TenantId | None, *, skipped: bool, after: int, rows_max: int
) -> list[ItemRow]:
    """Tasks of an operation by place, all or the skipped ones. Raises NotFound."""
    load_operation(operation, tenant)
    return store.load_items(operation, skipped=skipped, after=after, rows_max=rows_max)
