"""Removes what nobody needs any more, and clears the small hot tables."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from scheduler.services.idempotency import prune
from scheduler.services.run_tending import forget_demands
from scheduler.services.schedules import forget_occurrences
from scheduler.services.sign_ins import forget_tries
from scheduler.store import engine as engine_store
from scheduler.store import leases as lease_store

WORKER_STALE_S: Final = 60.0


def sweep() -> int:
    """Forget workers that went away without a word, kept answers and old counts; returns how many."""
    with transaction.atomic():
        return (
            lease_store.forget_stale_workers(stale_s=WORKER_STALE_S)
            + prune()
            + forget_occurrences()
            + forget_demands()
            + forget_tries()
        )


def vacuum() -> None:
    """Clear dead rows. Its own statement: VACUUM cannot run inside a transaction."""
    engine_store.vacuum_leases()
