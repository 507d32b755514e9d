"""Decides whether a shared limit admits an amount now, and if not, when to look again.

Token buckets: level(t) = min(capacity, level + rate × factor × Δt), where capacity and rate are the declared burst
and rate less the margin. The level may be negative: a debt left by a settlement or by one over-size request.
Semaphores: available = permits × factor − held, where held comes from live leases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import inf, nextafter
from typing import Final

from scheduler.policy.types import ResourceKind, ResourceView

EPSILON: Final = 1e-9
"""Float dust: an amount counts as available when it falls short by less than this, or this part of itself."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A resource at one moment: what can be taken now, how much fits at most, and how fast it comes back.

    `largest` is the largest single amount it will ever give: what is declared, with the margin, for a bucket.
    `refill_per_s` is 0 for semaphores and paused buckets. `closed_until` is set while a provider's Retry-After runs,
    `changes_at` while an override is in force that ends by itself. `barred` says that the breaker lets nothing through,
    until `barred_until` or (None) until its probe is back; `trial`, that it lets one through. `paused` ends by hand.
    """

    available: float
    capacity: float
    largest: float
    refill_per_s: float
    is_bucket: bool
    closed_until: float | None = None
    changes_at: float | None = None
    barred: bool = False
    barred_until: float | None = None
    trial: bool = False
    paused: bool = False


class ShortBy(Enum):
    """What keeps an amount from being taken: others use the limit, nobody may, or it will never hold that much.

    `BARRED` is a way of being closed: the provider behind the limit seems to be down.
    """

    IN_USE = "in_use"
    CLOSED = "closed"
    BARRED = "barred"
    OUT_OF_REACH = "out_of_reach"


@dataclass(frozen=True, slots=True)
class Short:
    """A limit that does not admit an amount: what it has, and the time by which it will have enough (None: unknown)."""

    available: float
    look_again_at: float | None
    by: ShortBy


def mended(resource: ResourceView) -> ResourceView:
    """As it will be if the next probe of its breaker finds the provider back: how a look ahead takes it."""
    if resource.open_until is None:
        return resource
    until = max(resource.open_until, resource.blocked_until or 0.0)
    return replace(resource, open_until=None, probing=False, blocked_until=until)


def level_now(resource: ResourceView, *, now: float) -> float:
    """Tokens in a bucket at `now`. A clock that went backwards refills nothing."""
    elapsed_s = max(0.0, now - resource.level_at)
    return min(capacity(resource), resource.level + effective_rate(resource) * elapsed_s)


def capacity(resource: ResourceView) -> float:
    """The most that can be available: effective burst of a bucket, effective permits of a semaphore."""
    if resource.kind is ResourceKind.TOKEN_BUCKET:
        return resource.burst * (1.0 - resource.margin)
    return float(int(resource.permits * resource.factor + EPSILON))


def effective_rate(resource: ResourceView) -> float:
    """Tokens per second that are handed out: declared rate, less margin, scaled by the learned factor."""
    return resource.rate * (1.0 - resource.margin) * resource.factor


def less_held(resource: ResourceView, held: float) -> ResourceView:
    """The resource with a semaphore's level less what live leases hold of it; a bucket is as it is."""
    return replace(resource, level=resource.permits - held) if resource.kind is ResourceKind.SEMAPHORE else resource


def limit_at(resource: ResourceView, *, now: float) -> Limit:
    """The resource as a plan at `now` sees it."""
    limit = _declared_limit(resource, now=now)
    if resource.open_until is None:
        return replace(limit, paused=True) if resource.paused else limit
    is_open = now < resource.open_until
    barred = is_open or resource.probing
    until = resource.open_until if is_open else None
    return replace(limit, barred=barred, barred_until=until, trial=not barred, paused=resource.paused)


def _declared_limit(resource: ResourceView, *, now: float) -> Limit:
    closed = resource.blocked_until if resource.blocked_until is not None and resource.blocked_until > now else None
    if resource.kind is ResourceKind.TOKEN_BUCKET:
        level = level_now(resource, now=now)
        rate = effective_rate(resource)
        full, changes_at = capacity(resource), resource.changes_at
        return Limit(level, full, resource.burst, rate, is_bucket=True, closed_until=closed, changes_at=changes_at)
    most = capacity(resource)
    held = resource.permits - resource.level
    return Limit(most - held, most, most, 0.0, is_bucket=False, closed_until=closed, changes_at=resource.changes_at)


def shortage(limit: Limit, available: float, amount: float, *, now: float, floor: float = 0.0) -> Short | None:
    """None when `amount` can be taken from `available` and `floor` is left; else what is missing.

    An amount above a bucket's capacity goes when the bucket is full (and leaves a debt), so it is not starved by the
    margin; above the declared burst, lowered after it was taken in, it waits for an edit. A limit of zero (rate, burst
    or permits) is a pause: nothing is taken, not even nothing or what is left, and only an edit ends it.
    """
    if limit.paused:
        return Short(0.0, None, ShortBy.CLOSED)
    if limit.barred:
        return Short(0.0, limit.barred_until, ShortBy.BARRED)
    if limit.capacity <= 0.0 or (limit.is_bucket and limit.refill_per_s <= 0.0):
        return Short(0.0, limit.changes_at, ShortBy.CLOSED)
    if limit.closed_until is not None:
        return Short(0.0, limit.closed_until, ShortBy.CLOSED)
    needed = min(amount, limit.capacity - floor) if limit.is_bucket else amount
    missing = needed + floor - available
    dust = EPSILON * max(1.0, needed)
    if amount > limit.largest + dust:
        return Short(available, limit.changes_at, ShortBy.OUT_OF_REACH)
    if missing <= dust:
        return None
    again = nextafter(now + missing / limit.refill_per_s, inf) if limit.is_bucket else None
    if limit.changes_at is not None:
        again = limit.changes_at if again is None else min(again, limit.changes_at)
    return Short(available, again, ShortBy.IN_USE)


def fits_ever(resource: ResourceView, amount: float) -> bool:
    """Whether `amount` is within the declared capacity. Beyond it a submission is refused."""
    declared = resource.burst if resource.kind is ResourceKind.TOKEN_BUCKET else float(resource.permits)
    return amount <= declared + EPSILON
