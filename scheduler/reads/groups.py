"""A group of tasks as its owner sees it: how it joins, and how many members are in which state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import TenantId
from scheduler.store import groups as store
from scheduler.store.control import load_tenants
from scheduler.store.groups import GroupRow

__all__ = ["GroupDetail", "GroupRow", "group_detail", "list_groups", "tenant_of_group"]


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """A group and its members by state."""

    group: GroupRow
    counts: Mapping[TaskState, int]

    @property
    def total(self) -> int:
        """How many members there are."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """How many have ended, in whatever way."""
        return sum(n for state, n in self.counts.items() if state in TERMINAL)


def group_detail(name: str, tenant: TenantId) -> GroupDetail:
    """The tenant's group of that name. Raises NotFound."""
    group = store.load(tenant, name) if "\x00" not in name else None
    if group is None:
        raise NotFound(f"There is no group {name!r}.", code="unknown_group")
    return GroupDetail(group, store.count_members(group.id))


def list_groups(tenant: TenantId | None, *, before: int, rows_max: int) -> list[GroupRow]:
    """A page of groups of a tenant (None: of anyone), newest first. Members are not counted: that costs one by one."""
    return store.load_page(tenant, before=before, rows_max=rows_max)


def tenant_of_group(own: TenantId | None, named: str | None) -> TenantId:
    """Whose group is meant: names are unique within a tenant, so a caller of all tenants (`own` None) has to say.

    Raises NotFound for another tenant, Refused when none is named.
    """
    if own is None and named is None:
        detail = "This token acts for every tenant; say whose group with 'tenant'."
        raise Refused(detail, code="tenant_required", errors=(FieldError(("tenant",), detail),))
    if named is None:
        assert own is not None  # noqa: S101 - refused above
        return own
    found = [row for row in load_tenants([named]) if own in (None, row.id)] if "\x00" not in named else []
    if not found:
        raise NotFound(f"There is no tenant {named!r}.", code="unknown_tenant")
    return found[0].id
