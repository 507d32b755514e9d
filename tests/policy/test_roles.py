"""What roles may do, and which of them are bound to a tenant."""

from __future__ import annotations

import pytest

from scheduler.policy.roles import PERMISSIONS, STAFF, Role, fault_in_role


def test_every_role_says_what_it_may_do() -> None:
    assert set(PERMISSIONS) == set(Role)
    assert all(PERMISSIONS.values())


def test_an_administrator_may_do_all_that_others_may_but_for_what_only_a_bound_account_needs() -> None:
    everything = frozenset().union(*PERMISSIONS.values())
    assert everything - PERMISSIONS[Role.ADMIN] == {"view_own_tenant"}


def test_a_viewer_only_looks_and_a_tenant_viewer_does_not_see_the_console() -> None:
    assert PERMISSIONS[Role.VIEWER] == {"view_console"}
    assert PERMISSIONS[Role.TENANT_VIEWER] == {"view_own_tenant"}
    assert not {Role.VIEWER, Role.OPERATOR, Role.TENANT_VIEWER} & STAFF


def test_who_operates_does_not_set_budgets_and_the_other_way_round() -> None:
    assert "edit_budget" not in PERMISSIONS[Role.OPERATOR]
    assert not {"operate_pool", "operate_task", "view_payload"} & PERMISSIONS[Role.BUDGET_ADMIN]


@pytest.mark.parametrize(
    ("role", "tenant", "says"),
    [
        (Role.TENANT_VIEWER, "acme", None),
        (Role.OPERATOR, None, None),
        (Role.TENANT_VIEWER, None, "say which one"),
        (Role.ADMIN, "acme", "Only a tenant-viewer is bound"),
    ],
)
def test_exactly_a_tenant_viewer_is_bound_to_a_tenant(role: Role, tenant: str | None, says: str | None) -> None:
    fault = fault_in_role(role, tenant)
    assert fault is None if says is None else says in str(fault)
