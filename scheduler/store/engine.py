"""Reads pools and tenants for engines."""

from __future__ import annotations

from typing import Final

from scheduler.policy.types import TenantId
from scheduler.store import queries

_SQL: Final = queries.load("engine.sql")


def load_served_pools() -> list[queries.Row]:
    """(id, name, executor, config text, slots_max, lease ttl in seconds) of pools with an in-process executor."""
    return queries.fetch(_SQL["served_pools"])


def load_tenant_slugs() -> dict[TenantId, str]:
    """Slugs by tenant."""
    return {TenantId(tenant): slug for tenant, slug in queries.fetch(_SQL["tenant_slugs"])}


def vacuum_leases() -> None:
    """Clear dead rows from the small hot tables. Must run outside a transaction.

    Each table is a transaction of its own, and a server that dies forgets no more than that it was cleared: none of
    them waits for the disk, which the hot transactions need.
    """
    queries.fetch(_SQL["commit_soon"])
    try:
        queries.run(_SQL["vacuum_hot_tables"])
    finally:
        queries.fetch(_SQL["commit_safely"])
