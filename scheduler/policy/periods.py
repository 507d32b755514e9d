"""Decides in which period money is spent: calendar months [start, end) in a tenant's zone, told in UTC.

Periods of a tenant follow each other without gap or overlap, also when its zone changes. It never asks what time it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

SHORTEST_S: Final = 14 * 86_400.0
"""A change of zone must not make a month's budget out of a few hours: a rest shorter than this joins the next month."""
_MONTHS: Final = 12


def period_at(now: float, zone: str, *, after: float | None = None) -> tuple[float, float]:
    """Start and end of the period that `now` is in, in Unix seconds. `after` is when the tenant's last one ended.

    A month begins at the first moment of its first day there: when clocks skip midnight, that is later than 00:00.
    """
    local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone))
    start = _month(local.year, local.month, zone)
    end = _month(local.year, local.month + 1, zone)
    if after is not None and start < after <= now:
        start = after
        if end - start < SHORTEST_S:
            end = _month(local.year, local.month + 2, zone)
    return start, end


def _month(year: int, month: int, zone: str) -> float:
    """When that month begins; months above twelve are those of the next year."""
    years, place = divmod(month - 1, _MONTHS)
    return datetime(year + years, place + 1, 1, tzinfo=ZoneInfo(zone)).timestamp()
