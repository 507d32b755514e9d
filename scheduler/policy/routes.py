"""Decides which of several models does a piece of work that asked for a capability, not for a model.

The first of the route (cheapest first, as its operator ordered them) whose provider is up and whose wait fits. While
none is, the work waits for the first that is not paused: what fails comes back by itself, a pause does not. Whoever
comes after a half-open breaker would leave it so, if all went elsewhere: one task is sent to try it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scheduler.errors import FieldError
from scheduler.policy.limits import Limit

OPTIONS_MAX: Final = 8
MODEL_CHARS_MAX: Final = 200


class Option(NamedTuple):
    """A model of a route, and what a call of it takes of shared limits, by name."""

    model: str
    resources: Mapping[str, float]


class Prospect(NamedTuple):
    """How one option looks now: whether its limits are open, and seconds until a newcomer would start.

    `half_open`: a breaker of it waits to be tried; `trial`: and nobody does, nor waits to.
    """

    open: bool
    paused: bool = False
    half_open: bool = False
    trial: bool = False
    wait_s: float = 0.0


class Queued(NamedTuple):
    """One limit that an option needs: as it is now, what a call takes of it, and what waits for it before."""

    limit: Limit
    amount: float
    ahead: float


def choose(prospects: Sequence[Prospect], *, latest_start: float | None, now: float) -> int:
    """The place of the option to take. `prospects` has at least one."""
    usable = [n for n, each in enumerate(prospects) if each.open and not each.paused]
    for n in usable:
        if latest_start is None or now + prospects[n].wait_s <= latest_start:
            return n
    if usable:
        return min(usable, key=lambda n: (prospects[n].wait_s, n))
    return next((n for n, each in enumerate(prospects) if not each.paused), 0)


def to_try(prospects: Sequence[Prospect], chosen: int) -> int | None:
    """An option before the chosen one that one task is to try, if there is one."""
    return next((n for n, each in enumerate(prospects[:chosen]) if each.trial and not each.paused), None)


def wait_s(queue: Sequence[Queued], *, expected_s: float, now: float) -> float:
    """Seconds until a call could start, by what waits for its limits and how fast they come back; the longest."""
    return max((_wait_for(each, expected_s, now) for each in queue), default=0.0)


def _wait_for(queued: Queued, expected_s: float, now: float) -> float:
    limit = queued.limit
    closed_s = max(0.0, (limit.closed_until or now) - now)
    missing = queued.ahead + queued.amount - limit.available
    if missing <= 0.0:
        return closed_s
    per_s = limit.refill_per_s if limit.is_bucket else limit.capacity / max(expected_s, 1e-3)
    return closed_s + (missing / per_s if per_s > 0.0 else float("inf"))


def faults_in_route(options: Sequence[Option], degraded_model: str | None) -> tuple[FieldError, ...]:
    """What is wrong with a route as it is declared."""
    faults = []
    if not 0 < len(options) <= OPTIONS_MAX:
        faults.append(FieldError(("models",), f"Give 1 to {OPTIONS_MAX} models, cheapest first."))
    names = [option.model for option in options]
    for n, name in enumerate(names):
        if not _is_name(name):
            said = f"A model has a name of 1 to {MODEL_CHARS_MAX} printable characters."
            faults.append(FieldError(("models", n, "model"), said))
        elif name in names[:n]:
            faults.append(FieldError(("models", n, "model"), f"The model {name!r} stands twice."))
    if degraded_model is not None and not _is_name(degraded_model):
        faults.append(FieldError(("degraded_model",), "Give the name of a model, or null."))
    return tuple(faults)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MODEL_CHARS_MAX and name.isprintable()
