"""Decides when a budget's owner is told, and what."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from scheduler.policy.money import format_usd


class DueAlert(NamedTuple):
    """An alert to tell, for the `tries`-th time, to each (URL, secret) of `targets`. Times in Unix seconds.

    `scope_id` is the tenant's or the run's; a run has no period.
    """

    id: int
    scope: str
    scope_id: int
    tenant: str
    threshold: float
    limit: int
    spent: int
    at: float
    tries: int
    period_start: float | None
    period_end: float | None
    time_zone: str
    targets: tuple[tuple[str, str], ...]


def crossed(before: int, after: int, limit: int | None, thresholds: Iterable[float]) -> list[float]:
    """The thresholds (parts of the limit) that spending has reached on its way from `before` to `after`."""
    if limit is None:
        return []
    return [part for part in sorted(thresholds) if before < part * limit <= after]


def message_of(alert: DueAlert) -> dict[str, object]:
    """What its owner's service is told."""
    period = None
    if alert.period_start is not None and alert.period_end is not None:
        bounds = {"start": _moment(alert.period_start), "end": _moment(alert.period_end)}
        period = {**bounds, "time_zone": alert.time_zone}
    return {
        "type": "budget.alert",
        "scope": alert.scope,
        "tenant": alert.tenant,
        "run": alert.scope_id if alert.scope == "run" else None,
        "threshold": alert.threshold,
        "limit_usd": format_usd(alert.limit),
        "spent_usd": format_usd(alert.spent),
        "period": period,
        "at": _moment(alert.at),
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
