"""What attempts are charged while they run. Kept beside their leases, and taken over when these end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from scheduler.policy.types import LeaseId, TaskId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("settle.sql")


def hold(lease: LeaseId, tenant: TenantId | None, *, charges_max: int) -> int | None:
    """Mark a lease as charged and keep it from ending; how many charges it has, at most so many. None: not current."""
    row = queries.fetch_one(_SQL["mark_charged"], {"lease": lease, "tenant": tenant, "most": charges_max})
    return None if row is None else int(row[1])


def add(lease: LeaseId, call: str, usage: str) -> bool:
    """Charge a call (`usage` is JSON text); False when one of that name was charged before."""
    return queries.run(_SQL["add_charge"], {"lease": lease, "call": call, "usage": usage}) == 1


def take(leases: Sequence[LeaseId]) -> dict[LeaseId, list[str]]:
    """What these leases were charged, by the name of the call; nobody finds it afterwards."""
    rows = queries.fetch(_SQL["take_charges"], {"leases": list(leases)})
    found: defaultdict[LeaseId, list[str]] = defaultdict(list)
    for lease, _, usage in sorted(rows):
        found[LeaseId(lease)].append(usage)
    return dict(found)


def write_usages(usages: Mapping[tuple[TaskId, LeaseId], str]) -> None:
    """Keep what attempts have used in all (JSON text) with them."""
    params = {
        "tasks": queries.array(task for task, _ in usages),
        "leases": queries.array(lease for _, lease in usages),
        "usages": queries.text_array(usages.values()),
    }
    queries.run(_SQL["write_usages"], params)
