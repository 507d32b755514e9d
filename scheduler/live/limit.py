"""Says in one sentence how a shared limit stands, and in six figures what is left of it and for how long.

Pure: the board in, words out. It must never say that all is well while something waits for the limit.
"""

from __future__ import annotations

from typing import Final

from scheduler.live import wording
from scheduler.live.attention import is_bottleneck
from scheduler.live.board import Board, ResourceView
from scheduler.live.rows import Figure

LONG_S: Final = 86_400.0
"""Nobody is told that a bucket will be empty or full later than this."""


def state_sentence(resource: ResourceView, now_s: float) -> str:
    """How it stands and what that means, for somebody who never saw it before."""
    says = _standing(resource, now_s)
    if resource.factor < 1.0 and not resource.paused:
        says += (
            f" It gives {wording.percent(resource.factor)} of what it could, since its provider refused calls; it comes"
            " back by itself while none is refused."
        )
    return says


def _standing(resource: ResourceView, now_s: float) -> str:
    waiting = wording.plural(resource.waiting, "task waits", "tasks wait")
    if resource.pause is not None:
        return f"Nothing is taken of it until somebody resumes it; {waiting}, and what runs goes on."
    if resource.paused:
        return f"Its limit is 0, so all that needs it stands still until it is raised; {waiting}."
    if resource.breaker == "open":
        at = wording.clock_utc(resource.open_until_s)
        return f"Its provider fails. Nothing is started with it until {at}, when one task tries it; {waiting}."
    if resource.breaker == "half_open":
        return f"Its provider failed. One task tries whether it is back; {waiting}."
    if resource.blocked_until_s is not None and resource.blocked_until_s > now_s:
        return f"Its provider refuses calls until {wording.clock_utc(resource.blocked_until_s)}; {waiting}."
    return _flowing(resource, now_s, waiting)


def _flowing(resource: ResourceView, now_s: float, waiting: str) -> str:
    used = wording.percent(resource.used_fraction)
    if resource.kind == "semaphore":
        if resource.available <= 0:
            return f"All {wording.plural(resource.capacity, 'permit')} are held; {waiting} for one to come back."
        return f"{wording.plural(resource.available, 'permit is', 'permits are')} free; {waiting}."
    if is_bottleneck(resource):
        again = "" if (left := _next_s(resource, now_s)) is None else f", the next token comes in {left}"
        return f"It is used up as fast as it refills{again}; {waiting}."
    if resource.in_use > 0:
        return f"{used} of what it refills is used; {waiting}."
    return f"Nothing is taken of it at the moment; {waiting}."


def _next_s(resource: ResourceView, now_s: float) -> str | None:
    if resource.next_at_s is None or resource.next_at_s <= now_s:
        return None
    return wording.duration(resource.next_at_s - now_s)


def refill_per_s(resource: ResourceView) -> float:
    """What a bucket really gives per second: its rate less the margin, lowered after refusals."""
    if not resource.rate or not resource.burst:
        return 0.0
    return resource.rate * resource.factor * min(1.0, resource.capacity / resource.burst)


def limit_figures(board: Board, resource: ResourceView) -> list[Figure]:
    """The figures of a limit's own page."""
    pools = [pool.name for pool in board.pools if pool.bound and pool.bound.resource == resource.name]
    held_up = f"bounds {wording.name_list(pools)}" if pools else "bounds no pool now"
    waiting = Figure("waiting", "Waiting for it", wording.count(resource.waiting), note=held_up)
    factor = Figure("factor", "Learned pace", wording.percent(resource.factor), note="of what is declared")
    return [*(_semaphore(resource) if resource.kind == "semaphore" else _bucket(resource)), waiting, factor]


def _semaphore(resource: ResourceView) -> list[Figure]:
    return [
        Figure("held", "Held", wording.amount(resource.in_use), note="by attempts that run"),
        Figure("free", "Free", wording.amount(resource.available), note=f"of {wording.amount(resource.capacity)}"),
        Figure("used", "Used", wording.percent(resource.used_fraction), note="of what it gives now"),
        Figure("permits", "Permits", wording.count(resource.permits), note="in force"),
    ]


def _bucket(resource: ResourceView) -> list[Figure]:
    refill = refill_per_s(resource)
    taken = f"{wording.percent(resource.used_fraction)} of the refill"
    left = f"of {wording.amount(resource.capacity)}" + (", a debt" if resource.available < 0 else "")
    return [
        Figure("left", "Tokens left", wording.amount(resource.available), note=left),
        Figure(
            "refill", "Refill / s", wording.amount(refill), note=f"rate {wording.amount(resource.rate)}, less margin"
        ),
        Figure("taken", "Taken / s", wording.rate(resource.in_use), note=taken),
        _trend(resource, refill),
    ]


def _trend(resource: ResourceView, refill: float) -> Figure:
    gains = refill - resource.in_use
    missing = resource.capacity - resource.available
    if gains > 0 and missing > 0:
        return Figure("trend", "Full in", _soon(missing / gains), note="as it is used now")
    if gains < 0 < resource.available:
        return Figure("trend", "Empty in", _soon(resource.available / -gains), note="as it is used now")
    return Figure("trend", "Level", "full" if missing <= 0 else "steady", note="as it is used now")


def _soon(seconds: float) -> str:
    return wording.glance(seconds) if seconds < LONG_S else "over a day"
