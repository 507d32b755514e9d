"""Decides what each role of the console may do: a role is a set of permissions, and nothing else knows it.

Whoever needs another mixture makes a group of their own; the groups named here are brought back to this.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """The groups that are always there."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    BUDGET_ADMIN = "budget-admin"
    ADMIN = "admin"
    TENANT_VIEWER = "tenant-viewer"


_LOOKS: Final = frozenset({"view_console"})
_OPERATES: Final = frozenset(
    {
        "view_payload",
        "operate_pool",
        "edit_resource_limit",
        "operate_task",
        "operate_run",
        "edit_schedule",
        "operate_worker",
        "edit_tenant",
        "top_up_budget",
        "view_audit",
    }
)
_BUDGETS: Final = frozenset({"edit_budget", "top_up_budget", "view_audit"})

PERMISSIONS: Final[Mapping[Role, frozenset[str]]] = {
    Role.VIEWER: _LOOKS,
    Role.OPERATOR: _LOOKS | _OPERATES,
    Role.BUDGET_ADMIN: _LOOKS | _BUDGETS,
    Role.ADMIN: _LOOKS | _OPERATES | _BUDGETS | {"edit_access", "edit_people"},
    Role.TENANT_VIEWER: frozenset({"view_own_tenant"}),
}
"""The codenames of the permissions that each role holds."""

STAFF: Final = frozenset({Role.BUDGET_ADMIN, Role.ADMIN})
"""Roles that find something to do in the administration."""


def fault_in_role(role: Role, tenant: str | None) -> str | None:
    """What is wrong with giving an account this role and binding it to this tenant (None: to none), in a sentence."""
    if role is Role.TENANT_VIEWER and tenant is None:
        return "A tenant-viewer sees one tenant: say which one."
    if role is not Role.TENANT_VIEWER and tenant is not None:
        return f"Only a tenant-viewer is bound to a tenant; the role {role} sees them all."
    return None
