"""Decides which tenant is next within a class, and which class is owed a start.

Tenants: virtual counters after the Virtual Token Counter (Sheng et al., *Fairness in Serving Large Language Models*,
arXiv 2401.00588). A start adds its cost ÷ weight; the lowest counter goes next. A tenant that comes back from idle is
lifted to just before the lowest counter of those it has to share with, at most to the class's virtual time (the counter
of the last tenant served, as in start-time fair queueing), so no credit is banked while idle, and a slow pool's
newcomer is not measured by the pace of a fast pool. "Idle" needs no bookkeeping: a tenant was idle after its last
start exactly if everything it has waiting became ready later than that.

Classes: each start in a pool credits every class that has startable work there with its guaranteed share; a class
whose credit reaches one is owed the next start.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nextafter
from typing import Final

from scheduler.policy.types import FairCounter, PriorityClass

WEIGHT_MIN: Final = 1e-6
"""A weight of 0 means 'only when nobody else wants the slot': the cost of a start is then as good as infinite."""

CREDIT_MAX: Final = 2.0
"""A class cannot bank more starts than this while a limit keeps it from using them."""


def stayed(counter: FairCounter | None, *, oldest_ready_at: float) -> FairCounter | None:
    """The counter of a tenant that had work waiting ever since its last start; None for one that was idle since."""
    return counter if counter is not None and oldest_ready_at <= counter.last_start_at else None


def lifted(counter: FairCounter | None, *, lowest_active: float, clock: float) -> float:
    """The counter to compare a tenant by that was idle: its own, but no lower than its rivals are."""
    floor = min(clock, nextafter(lowest_active, -inf))
    return floor if counter is None else max(counter.value, floor)


def charged(counter: float, *, cost: float, weight: float) -> float:
    """The counter after a start of this fair cost (seconds or dollars, one unit per deployment)."""
    return counter + cost / max(weight, WEIGHT_MIN)


def correction(*, expected: float, actual: float, weight: float) -> float:
    """What to add to a counter once the cost of a start is known; `settle.sql` does the same for many at once."""
    return (actual - expected) / max(weight, WEIGHT_MIN)


def accrue(
    credits_of_pool: dict[PriorityClass, float],
    *,
    started: PriorityClass,
    startable: Iterable[PriorityClass],
    shares: tuple[float, ...],
) -> None:
    """Book one start of class `started` into a pool's credits; classes in `startable` had work that could go too.

    A class that is blocked keeps what it has and gains nothing; the started class pays one, and never owes.
    """
    for priority in startable:
        if shares[priority] > 0.0:
            credits_of_pool[priority] = min(CREDIT_MAX, credits_of_pool.get(priority, 0.0) + shares[priority])
    if started in credits_of_pool:
        credits_of_pool[started] = max(0.0, credits_of_pool[started] - 1.0)


def is_owed(credit: float) -> bool:
    """Whether a class with this credit goes first."""
    return credit >= 1.0 - 1e-9
