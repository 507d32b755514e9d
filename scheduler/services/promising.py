"""Promises fixed starts: books a slot of the pool for each, and refuses what would be more than may be promised.

Promises in one pool are made one transaction at a time. A submission without a fixed start costs nothing here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from scheduler.errors import FieldError, Refused
from scheduler.policy.admission import Admitted, PoolTerms
from scheduler.policy.fixed_starts import Booking, first_room, has_room, reservable_slots
from scheduler.policy.types import PoolId, TaskId
from scheduler.store import fixed_starts as store

Rows = Sequence[tuple[int, Admitted]]


def refuse_overbooked(rows: Rows, pools: Mapping[str, PoolTerms]) -> dict[int, Refused]:
    """Refusals by place of those fixed starts that the capacity of their pool cannot be promised to.

    What is due already needs no promise ahead. Those of one call count against each other, in order.
    """
    ahead = [(place, row.pool, row.fixed.booking) for place, row in rows if row.fixed is not None and row.due_at]
    if not ahead:
        return {}
    slots = {terms.id: reservable_slots(terms.slots_max, terms.reservable_fraction) for terms in pools.values()}
    store.lock_bookings({pool for _, pool, _ in ahead})
    booked: dict[PoolId, list[Booking]] = defaultdict(list)
    for pool in {pool for _, pool, _ in ahead}:
        wanted = [b for _, p, b in ahead if p == pool]
        since, until = min(b.starts_at for b in wanted), max(b.ends_at for b in wanted)
        booked[pool] = store.load_bookings(pool, since=since, until=until)
    refusals = {}
    for place, pool, booking in ahead:
        if has_room(booking, booked[pool], slots=slots[pool]):
            booked[pool].append(booking)
        else:
            refusals[place] = _conflict(pool, booking, booked[pool], slots[pool])
    return refusals


def _conflict(pool: PoolId, wanted: Booking, booked: Sequence[Booking], slots: int) -> Refused:
    later = store.load_bookings(pool, since=wanted.starts_at)
    room_at = first_room(wanted, list({*later, *booked}) if len(later) < len(booked) else later, slots=slots)
    when = datetime.fromtimestamp(room_at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    detail = f"All {slots} slots of the pool that may be promised at once are, at that time; there is room at {when}."
    return Refused(detail, code="reservation_conflict", errors=(FieldError(("start_at",), detail),))


def keep_promises(rows: Mapping[TaskId, Admitted]) -> None:
    """Store the promises of new tasks."""
    promised = [(task, row) for task, row in rows.items() if row.fixed is not None]
    if promised:
        store.insert(promised)
