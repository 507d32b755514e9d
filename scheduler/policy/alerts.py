"""Decides what people are told of, when a budget's owner is, and in which words of JSON.

An alert is an event like any other: it is announced in the transaction of what it tells of, and webhooks carry it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from scheduler.policy.money import format_usd
from scheduler.policy.runs import Cap, Near
from scheduler.policy.types import RunId


class Alert(StrEnum):
    """What people are told of, as an event's type. Those of limits concern no single tenant."""

    BUDGET = "alert.budget"
    """A budget reached a part of its limit that its owner wanted to hear of."""
    RUN_CAP = "alert.run_cap"
    """A run came near one of its caps."""
    RUN_STOPPED = "alert.run_stopped"
    """A run was killed because it reached one."""
    LIMIT_PAUSED = "alert.limit_paused"
    """A provider wants money; nothing is asked of it until a person resumes its limit."""
    BREAKER_OPEN = "alert.breaker_open"
    """A provider counts as down."""
    BREAKER_CLOSED = "alert.breaker_closed"
    """It is back."""
    WEBHOOK_DISABLED = "alert.webhook_disabled"
    """A webhook failed for too long."""


class Crossing(NamedTuple):
    """A budget that reached a part of its limit. Times in Unix seconds.

    `scope_id` is the tenant's or the run's; a run has no period.
    """

    id: int
    scope: str
    scope_id: int
    tenant_id: int
    tenant: str
    threshold: float
    limit: int
    spent: int
    at: float
    period_start: float | None
    period_end: float | None
    time_zone: str


def crossed(before: int, after: int, limit: int | None, thresholds: Iterable[float]) -> list[float]:
    """The thresholds (parts of the limit) that spending has reached on its way from `before` to `after`."""
    if limit is None:
        return []
    return [part for part in sorted(thresholds) if before < part * limit <= after]


def message_of(crossing: Crossing) -> dict[str, object]:
    """What a tenant is told of its budget."""
    period = None
    if crossing.period_start is not None and crossing.period_end is not None:
        bounds = {"start": _moment(crossing.period_start), "end": _moment(crossing.period_end)}
        period = {**bounds, "time_zone": crossing.time_zone}
    return {
        "alert": crossing.id,
        "tenant": crossing.tenant,
        "threshold": crossing.threshold,
        "limit_usd": format_usd(crossing.limit),
        "spent_usd": format_usd(crossing.spent),
        "period": period,
        "at": _moment(crossing.at),
    }


def message_of_run(run: RunId, near: Near) -> dict[str, object]:
    """What a run's owner is told of a cap that it came near, or reached. Steps, tokens and seconds are numbers."""
    used, most = near.used, near.most
    if near.cap is Cap.COST:
        amounts: dict[str, object] = {"used_usd": format_usd(int(used)), "most_usd": format_usd(int(most))}
    else:
        amounts = {"used": used, "most": most}
    return {"run": run, "cap": near.cap.value, "part": round(used / most, 4), **amounts}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
