"""Reads and writes promised starts, with the slots that are booked for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from scheduler.policy.admission import Admitted
from scheduler.policy.fixed_starts import HELD_AFTER_S, HOLD_MAX_S, Booking
from scheduler.policy.types import PoolId, TaskId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("fixed_starts.sql")

BOOKINGS_MAX: Final = 20_000
"""Bookings looked at for one decision; beyond that many, those that end first."""


def lock_bookings(pools: Collection[PoolId]) -> None:
    """Wait for the turn to promise starts in these pools, held until the transaction ends."""
    queries.fetch(_SQL["lock_bookings"], {"pools": queries.array(pools)})


def load_bookings(pool: PoolId, *, since: float, until: float | None = None) -> list[Booking]:
    """What is booked in a pool at any time after `since` and before `until`."""
    params = {"pool": pool, "since": since, "until": until, "rows_max": BOOKINGS_MAX}
    return [Booking(*row) for row in queries.fetch(_SQL["read_bookings"], params)]


@asked
def load_held(pool: PoolId, *, but: TaskId | None = None) -> Question[tuple[int, float | None]]:
    """How many slots of a pool are kept free for fixed starts (`but` for this one), and when the first of those is."""
    params = {"pool": pool, "but": but, "held_after_s": HELD_AFTER_S, "held_ahead_s": HOLD_MAX_S}
    return Question(_SQL["read_held"], params, lambda rows: (int(rows[0][0]), rows[0][1]) if rows else (0, None))


def insert(promises: Sequence[tuple[TaskId, Admitted]]) -> None:
    """Store the promises of these tasks, which have one."""
    fixed = [(task, row, row.fixed) for task, row in promises if row.fixed is not None]
    params = {
        "tasks": queries.array(task for task, _, _ in fixed),
        "pools": queries.array(row.pool for _, row, _ in fixed),
        "starts": queries.array(f.booking.starts_at for _, _, f in fixed),
        "ends": queries.array(f.booking.ends_at for _, _, f in fixed),
        "helds": queries.array(f.held_from for _, _, f in fixed),
        "tolerances_s": queries.array(f.tolerance_s for _, _, f in fixed),
        "on_misses": queries.array(f.on_miss.value for _, _, f in fixed),
        "expires": queries.array(row.expires_at for _, row, _ in fixed),
    }
    queries.run(_SQL["insert_fixed_starts"], params)
