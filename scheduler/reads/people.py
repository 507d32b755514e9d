"""Whose eyes an account has: those of everybody, or those of one tenant."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from scheduler.store import people as store


class Rights(NamedTuple):
    """What an account holds by itself and by its roles (`app.codename`), and the tenant that it is bound to, if any."""

    permissions: frozenset[str]
    tenant: str | None


def rights_of_account(user: int) -> Rights:
    """What an account may, and of whom. A superuser's permissions are those that somebody gave it."""
    return Rights(*store.load_rights(user))


def tenant_of_account(user: int) -> str | None:
    """The slug of the tenant that an account is bound to; None: it is bound to none, and its permissions decide."""
    return store.load_binding(user)


def tenants_of_accounts(users: Collection[int]) -> dict[int, str]:
    """The slugs of the tenants that accounts are bound to; those that are bound to none are not there."""
    return store.load_bindings(users)
