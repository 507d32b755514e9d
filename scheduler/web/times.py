"""Decides how a time reads to one person: on the clock of the zone that was chosen in the settings, always named.

A view is run in that zone (`web/access.py`). What is drawn for everybody at once, the live parts, says UTC instead; and
beside a time in a page stands what it is in UTC, so that two people can talk about it.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone

from scheduler.live import wording

UTC_NAME: Final = "UTC"
COMMON: Final = (
    "UTC",
    "Africa/Johannesburg",
    "Africa/Lagos",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Seoul",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Paris",
)
"""What is proposed; any other name of a zone will do."""


@lru_cache(maxsize=256)
def zone_named(name: str) -> ZoneInfo | None:
    """The zone of that name; None when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def clock(at_s: float | None) -> str:
    """A Unix time as ``21:00:03 KST``."""
    return wording.NONE if at_s is None else _said(at_s, "%H:%M:%S")


def day_and_clock(at_s: float | None) -> str:
    """A Unix time as ``2026-11-30 21:00:03 KST``."""
    return wording.NONE if at_s is None else _said(at_s, "%Y-%m-%d %H:%M:%S")


def _said(at_s: float, form: str) -> str:
    there = datetime.fromtimestamp(at_s, timezone.get_current_timezone())
    name = f"{there:%Z}"
    return f"{there:{form}} {UTC_NAME if name.startswith(('+', '-')) else ''}{name}"
