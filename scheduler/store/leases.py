"""Leases as their holders see them, workers, and who leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from scheduler.policy.types import LeasedTask, LeaseId, PoolId, WorkerId
from scheduler.store import queries
from scheduler.store.starts import leased_task

_SQL: Final = queries.load("leases.sql")


def renew(worker: WorkerId, leases: Sequence[LeaseId]) -> dict[LeaseId, bool]:
    """Extend these leases; of those still current, whether each was told to stop."""
    rows = queries.fetch(_SQL["renew_leases"], {"worker": worker, "leases": list(leases)})
    return {LeaseId(lease): told_to_stop for lease, told_to_stop in rows}


def pick_up(worker: WorkerId) -> list[LeasedTask]:
    """Leases that were given to this worker and that it has not seen yet."""
    return [leased_task(row) for row in queries.fetch(_SQL["pick_up_leases"], {"worker": worker})]


def load_cancelled(worker: WorkerId) -> list[LeaseId]:
    """Leases of this worker that were told to stop."""
    return [LeaseId(row[0]) for row in queries.fetch(_SQL["cancelled_leases"], {"worker": worker})]


def register_worker(
    worker: WorkerId, *, name: str, kind: str, slots: Mapping[PoolId, int], labels: Sequence[str] | None
) -> None:
    """Announce a worker and the slots it offers by pool; repeating it changes the offer."""
    text = orjson.dumps({str(pool): offered for pool, offered in slots.items()}).decode()
    queries.run(
        _SQL["register_worker"],
        {
            "id": worker,
            "name": name,
            "kind": kind,
            "slots": text,
            "labels": None if labels is None else list(labels),
        },
    )


def see_worker(worker: WorkerId) -> bool:
    """Note that the worker lives; False when it was forgotten and must register again."""
    return queries.run(_SQL["see_worker"], {"worker": worker}) == 1


def drain_worker(worker: WorkerId) -> None:
    """Give the worker no more work."""
    queries.run(_SQL["drain_worker"], {"worker": worker})


def forget_worker(worker: WorkerId) -> None:
    """Remove a worker that left."""
    queries.run(_SQL["forget_worker"], {"worker": worker})


def forget_stale_workers(*, stale_s: float) -> int:
    """Remove workers not seen for so long that hold no lease; returns how many."""
    return queries.run(_SQL["forget_stale_workers"], {"stale_s": stale_s})


def take_leadership(me: WorkerId, *, ttl_s: float) -> int | None:
    """Become or stay leader for `ttl_s`; the term, or None while another leads."""
    row = queries.fetch_one(_SQL["take_leadership"], {"me": me, "ttl_s": ttl_s})
    return None if row is None else int(row[0])


def give_up_leadership(me: WorkerId) -> None:
    """Let another lead at once."""
    queries.run(_SQL["give_up_leadership"], {"me": me})
