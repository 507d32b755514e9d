"""Reads and writes which accounts see one tenant only."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from scheduler.policy.types import TenantId
from scheduler.store import queries

_SQL: Final = queries.load("people.sql")


def load_binding(user: int) -> str | None:
    """The slug of the tenant that an account is bound to; None: it is bound to none."""
    row = queries.fetch_one(_SQL["read_binding"], {"user": user})
    return None if row is None else str(row[0])


def load_rights(user: int) -> tuple[frozenset[str], str | None]:
    """The permissions that an account holds, each with its app, and the tenant that it is bound to (None: to none)."""
    ((held, tenant),) = queries.fetch(_SQL["read_rights"], {"user": user})
    return frozenset(held), tenant


def load_bindings(users: Collection[int]) -> dict[int, str]:
    """The slugs of the tenants that accounts are bound to, by account."""
    return dict(queries.fetch(_SQL["read_bindings"], {"users": queries.array(users)}))


def bind(user: int, tenant: TenantId | None) -> None:
    """Bind an account to a tenant, or to none."""
    if tenant is None:
        queries.run(_SQL["unbind_account"], {"user": user})
    else:
        queries.run(_SQL["bind_account"], {"user": user, "tenant": tenant})
