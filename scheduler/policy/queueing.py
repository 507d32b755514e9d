"""Decides how long a task would wait in front of a number of slots, and how few slots keep that wait short enough.

A closed form, cheap enough for every second: what waits ahead drains past more urgent arrivals (fluid), and arrivals
bunch (Erlang's C formula for M/M/n; A. K. Erlang, 1917). It knows nothing of limits, tenants or deadlines: it answers
how many slots would do if slots were all that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log
from typing import Final

LATE_SHARE: Final = 0.1
"""The part of waits that may be longer than the answer: 0.1 makes it the p90."""
DUST: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What a task of one class stands in.

    `ahead` tasks go first; `passing_per_s` more urgent ones arrive each second and pass it; `load_per_s` arrive each
    second in its class and above. Each takes a slot for `service_s` seconds.
    """

    ahead: float
    passing_per_s: float
    load_per_s: float
    service_s: float


def wait_p90_s(queue: Queue, slots: int) -> float:
    """The wait in seconds that nine of ten tasks stay below; infinite when the slots cannot keep up."""
    load = queue.load_per_s * queue.service_s
    if load <= 0.0:
        return _drain_s(queue, slots)
    if slots <= load:
        return inf
    blocked = 1.0
    for n in range(1, slots + 1):
        blocked = load * blocked / (n + load * blocked)
    return max(_drain_s(queue, slots), _bunching_s(queue, slots, blocked))


def fewest_slots(queue: Queue, wait_max_s: float, *, slots_max: int) -> int | None:
    """The fewest slots with a p90 wait of at most `wait_max_s`; None when `slots_max` are too few.

    One pass over the numbers of slots, so that it takes a millisecond even for ten thousand.
    """
    drained_by = 0.0
    if queue.ahead > 0.0:
        drained_by = queue.service_s * (queue.ahead / wait_max_s + queue.passing_per_s)
    load = queue.load_per_s * queue.service_s
    if max(drained_by, load) > slots_max:
        return None
    least = ceil(drained_by - DUST)
    if load <= 0.0:
        return least
    blocked = 1.0
    for slots in range(1, slots_max + 1):
        blocked = load * blocked / (slots + load * blocked)
        if slots >= least and slots > load and _bunching_s(queue, slots, blocked) <= wait_max_s:
            return slots
    return None


def _drain_s(queue: Queue, slots: int) -> float:
    if queue.ahead <= 0.0:
        return 0.0
    free_per_s = slots / queue.service_s - queue.passing_per_s
    return queue.ahead / free_per_s if free_per_s > 0.0 else inf


def _bunching_s(queue: Queue, slots: int, blocked: float) -> float:
    """From P(wait > t) = C exp(-(slots - load) t / service), where `blocked` is Erlang's B and gives C."""
    load = queue.load_per_s * queue.service_s
    waits = slots * blocked / (slots - load * (1.0 - blocked))
    return 0.0 if waits <= LATE_SHARE else log(waits / LATE_SHARE) * queue.service_s / (slots - load)


def smoothing(elapsed_s: float, memory_s: float) -> float:
    """The weight of what was just seen in an average that forgets over `memory_s`; 0 when no time has passed."""
    return 1.0 - exp(-max(elapsed_s, 0.0) / memory_s)
