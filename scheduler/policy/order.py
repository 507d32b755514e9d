"""Decides how urgent a waiting task is: one number, higher goes first.

score = base[class] + min(aging_rate × wait_s, age_cap) + urgency(slack)

It never looks at tenants, resources or slots; `plan` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import PriorityClass, TaskView

URGENCY_WINDOW_MIN_S: Final = 5.0
"""Urgency of a deadline begins at least this long before the latest start."""

PRESSING_MAX: Final = 100
"""Of each pool and class, a plan sees so many tasks whose deadlines press most, whatever the turn of their lanes."""

FIXED_POINTS: Final = 100_000.0
"""What puts a fixed start, when its time has come, before everything that has no promise."""


@dataclass(frozen=True, slots=True)
class OrderPolicy:
    """Constants of the score. `base`, `shares` go by class, critical first.

    `shares` is the fraction of a pool's starts that a class is guaranteed while it has startable work there.
    A task that waited longer than `late_after_s` speaks for all it needs, not only for what it lacks.
    """

    base: tuple[float, float, float, float] = (10_000.0, 1_000.0, 100.0, 10.0)
    aging_rate_per_s: float = 2.0
    age_cap: float = 800.0
    urgency_max: float = 5_000.0
    overdue_rate_per_s: float = 10.0
    overdue_cap: float = 2_000.0
    shares: tuple[float, float, float, float] = (0.0, 0.0, 0.10, 0.05)
    late_after_s: float = 400.0


DEFAULT_ORDER: Final = OrderPolicy()


def urgency(slack_s: float, window_s: float, policy: OrderPolicy = DEFAULT_ORDER) -> float:
    """Points for a deadline whose latest start is `slack_s` away (negative: it has passed).

    0 while the slack is at least the window, rising linearly to `urgency_max` at zero slack, then by
    `overdue_rate_per_s` up to `overdue_cap` more. Never falls as time passes.
    """
    if slack_s >= window_s:
        return 0.0
    if slack_s >= 0.0:
        return policy.urgency_max * (1.0 - slack_s / window_s)
    return policy.urgency_max + min(policy.overdue_rate_per_s * -slack_s, policy.overdue_cap)


def score(task: TaskView, priority: PriorityClass, *, now: float, policy: OrderPolicy = DEFAULT_ORDER) -> float:
    """The task's score at `now`. A task that became ready in the future (clock skew) has waited 0 s."""
    aged = policy.aging_rate_per_s * (now - task.ready_at)
    points = policy.base[priority] + (min(aged, policy.age_cap) if aged > 0.0 else 0.0)
    if task.latest_start is None:
        return points
    if task.fixed:
        points += FIXED_POINTS
    window_s = max(URGENCY_WINDOW_MIN_S, task.expected_s)
    return points + urgency(task.latest_start - now, window_s, policy)
