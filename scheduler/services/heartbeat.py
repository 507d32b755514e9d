"""Keeps leases, workers and leadership alive, and hands given leases to their worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from scheduler.policy.types import LeasedTask, LeaseId, PoolId, WorkerId
from scheduler.services.again import again
from scheduler.store import leases as store


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a renewal found: leases that are not this worker's any more, and those told to stop."""

    lost: tuple[LeaseId, ...]
    told_to_stop: tuple[LeaseId, ...]
    known: bool


@again
def renew(worker: WorkerId, leases: Sequence[LeaseId]) -> Renewed:
    """Renew a worker and its leases. `known` False: the worker was forgotten and must register again. Idempotent."""
    with transaction.atomic():
        known = store.see_worker(worker)
        current = store.renew(worker, leases) if leases else {}
    return Renewed(
        lost=tuple(lease for lease in leases if lease not in current),
        told_to_stop=tuple(lease for lease, told in current.items() if told),
        known=known,
    )


@again
def register(
    worker: WorkerId, *, name: str, kind: str, slots: Mapping[PoolId, int], labels: Sequence[str] | None = None
) -> None:
    """Announce a worker, or change what it offers. `labels` (name=value, sorted) stay as they were first told."""
    with transaction.atomic():
        store.register_worker(worker, name=name, kind=kind, slots=slots, labels=labels)


@again
def drain(worker: WorkerId) -> None:
    """Give the worker nothing new."""
    with transaction.atomic():
        store.drain_worker(worker)


@again
def leave(worker: WorkerId) -> None:
    """Forget a worker that has handed everything back, and let another lead."""
    with transaction.atomic():
        store.give_up_leadership(worker)
        store.forget_worker(worker)


@again
def lead(worker: WorkerId, *, ttl_s: float) -> int | None:
    """Become or stay the leader; the term, or None while another leads."""
    with transaction.atomic():
        return store.take_leadership(worker, ttl_s=ttl_s)


@again
def pick_up(worker: WorkerId) -> list[LeasedTask]:
    """Leases that another engine's plan gave to this worker."""
    with transaction.atomic():
        return store.pick_up(worker)


def cancelled(worker: WorkerId) -> list[LeaseId]:
    """Leases of this worker that were told to stop: asked for when the doorbell rings, before the next renewal."""
    return store.load_cancelled(worker)
