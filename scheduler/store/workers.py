"""Remote workers, what they offer, and the leases that they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import orjson

from scheduler.policy.remote import Claim, Given, HeldLease, Kept, RemoteWorker, Stop, WorkerLine
from scheduler.policy.types import LeaseId, PoolId, TenantId, WorkerId
from scheduler.store import queries
from scheduler.store.starts import leased_task

_SQL: Final = queries.load("workers.sql")

Slots = Mapping[PoolId, int]


def register(
    worker: WorkerId,
    *,
    name: str,
    tenant: TenantId | None,
    declared: Slots,
    labels: Sequence[str],
    gateway: WorkerId | None,
) -> bool:
    """Add a worker, or take it back under its id; it offers its slots at once where a gateway is given.

    False when the id is another's.
    """
    params = {
        "id": worker,
        "name": name,
        "tenant": tenant,
        "declared": _text(declared),
        "slots": _text(declared if gateway is not None else {}),
        "labels": list(labels),
        "gateway": gateway,
    }
    return queries.fetch_one(_SQL["register_remote"], params) is not None


def load_strays(worker: WorkerId, named: Collection[int]) -> tuple[LeaseId, ...]:
    """Leases that this worker was handed and does not name."""
    rows = queries.fetch(_SQL["strays_of_remote"], {"worker": worker, "named": queries.array(named)})
    return tuple(LeaseId(row[0]) for row in rows)


def _text(slots: Slots) -> str:
    return orjson.dumps({str(pool): count for pool, count in slots.items()}).decode()


def _slots(text: str) -> dict[PoolId, int]:
    return {PoolId(int(pool)): int(count) for pool, count in orjson.loads(text).items()}


def find(workers: Sequence[WorkerId]) -> list[RemoteWorker]:
    """Those of these that are remote workers."""
    rows = queries.fetch(_SQL["find_remote"], {"workers": queries.array(workers)})
    return [
        RemoteWorker(WorkerId(worker), tenant, _slots(declared), draining)
        for worker, tenant, declared, draining in rows
    ]


def offer(gateway: WorkerId, offers: Mapping[WorkerId, Slots]) -> set[WorkerId]:
    """Store what workers offer through a gateway; the workers that are still known."""
    params = {
        "gateway": gateway,
        "workers": queries.array(offers),
        "offers": queries.text_array(_text(slots) for slots in offers.values()),
    }
    return {WorkerId(row[0]) for row in queries.fetch(_SQL["offer_slots"], params)}


def withdraw(gateway: WorkerId, workers: Iterable[WorkerId]) -> None:
    """Workers left this gateway."""
    queries.run(_SQL["withdraw_offers"], {"gateway": gateway, "workers": queries.array(workers)})


def beat(gateway: WorkerId, workers: Iterable[WorkerId]) -> dict[WorkerId, bool]:
    """Note that these workers live; those that are still this gateway's, and whether they are to drain."""
    rows = queries.fetch(_SQL["beat_gateway"], {"gateway": gateway, "workers": queries.array(workers)})
    return {WorkerId(worker): draining for worker, draining in rows}


def load_elsewhere(gateway: WorkerId, workers: Collection[WorkerId]) -> frozenset[WorkerId]:
    """Those of these workers that are at another gateway."""
    rows = queries.fetch(_SQL["elsewhere"], {"gateway": gateway, "workers": queries.array(workers)})
    return frozenset(WorkerId(row[0]) for row in rows)


def claim(gateway: WorkerId) -> list[Given]:
    """Leases that were given to workers of this gateway and that it has not seen yet."""
    rows = queries.fetch(_SQL["claim_given"], {"gateway": gateway})
    return [Given(pool, tenant, ttl_s, leased_task(tuple(rest))) for pool, tenant, ttl_s, *rest in rows]


def load_held(workers: Iterable[WorkerId]) -> list[HeldLease]:
    """What runs at these workers."""
    rows = queries.fetch(_SQL["leases_of_workers"], {"workers": queries.array(workers)})
    return [HeldLease(LeaseId(lease), WorkerId(worker), age_s, Stop(stop)) for lease, worker, age_s, stop in rows]


def renew(claims: Sequence[Claim]) -> dict[LeaseId, Kept]:
    """Extend leases of remote workers; those that are still current and theirs."""
    rows = queries.fetch(_SQL["renew_remote"], _claims(claims))
    return {LeaseId(lease): Kept(Stop(stop), degraded, expires_at) for lease, stop, degraded, expires_at in rows}


def load_own(claims: Sequence[Claim]) -> set[LeaseId]:
    """The leases that those who name them may report on."""
    return {LeaseId(row[0]) for row in queries.fetch(_SQL["own_leases"], _claims(claims))}


def _claims(claims: Sequence[Claim]) -> dict[str, object]:
    return {
        "leases": queries.array(c.lease for c in claims),
        "tenants": queries.array(c.tenant for c in claims),
        "pools": queries.text_array(None if c.pools is None else queries.text_array(sorted(c.pools)) for c in claims),
    }


def drain(worker: WorkerId, tenant: TenantId | None) -> bool:
    """Have a worker of `tenant` (None: anybody's) take nothing new; False when there is none."""
    return queries.run(_SQL["drain_remote"], {"worker": worker, "tenant": tenant}) == 1


def load_lines(tenant: TenantId | None, *, rows_max: int) -> list[WorkerLine]:
    """Remote workers, newest first."""
    return [
        WorkerLine(WorkerId(worker), name, slug, tuple(labels or ()), _slots(declared), _slots(slots), draining, *rest)
        for worker, name, slug, labels, declared, slots, draining, *rest in queries.fetch(
            _SQL["list_remote"], {"tenant": tenant, "rows_max": rows_max}
        )
    ]
