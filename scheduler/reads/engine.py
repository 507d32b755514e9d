"""What an engine needs to know about pools and tenants, besides what each dispatch reads."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from scheduler.policy.types import PoolId, TenantId
from scheduler.store import engine as store


@dataclass(frozen=True, slots=True)
class ServedPool:
    """A pool whose tasks run inside engines."""

    id: PoolId
    name: str
    executor: str
    config: dict[str, object]
    slots_max: int
    lease_ttl_s: float


@dataclass(frozen=True, slots=True)
class EngineView:
    """Pools to serve, and tenants' slugs."""

    pools: list[ServedPool]
    tenants: dict[TenantId, str]


def engine_view() -> EngineView:
    """Pools with an in-process executor, and all tenants."""
    pools = [
        ServedPool(pool, name, executor, orjson.loads(config), slots_max, ttl_s)
        for pool, name, executor, config, slots_max, ttl_s in store.load_served_pools()
    ]
    return EngineView(pools, store.load_tenant_slugs())
