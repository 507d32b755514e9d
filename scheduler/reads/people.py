"""Whose eyes an account has: those of everybody, or those of one tenant."""

from __future__ import annotations

from scheduler.store import people as store


def tenant_of_account(user: int) -> str | None:
    """The slug of the tenant that an account is bound to; None: it is bound to none, and its permissions decide."""
    return store.load_binding(user)
