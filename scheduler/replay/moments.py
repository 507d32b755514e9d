"""Reads a moment as traces write it: ISO 8601 with up to nine decimals, or seconds, milliseconds or more since 1970.

It must never guess: a form that two countries read differently is refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Final

_ISO: Final = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?(Z|UTC|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\d{1,19}(\.\d{1,12})?([eE][+]?\d{1,2})?")
_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""A number from so large on counts in this part of a second; in seconds it would be the year 5138 or later."""


def parse_moment(text: str) -> float:
    """Seconds since 1970; without a zone it is UTC. Raises ValueError with a sentence."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        value = float(text)
        for least, per_s in _UNITS:
            if value >= least:
                return value / per_s
        return value
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError("is no time: write 2026-01-31 13:45:00.123 (UTC, or with a zone), or seconds since 1970")
    year, month, day, hour, minute = (int(part) for part in found.groups()[:5])
    second, decimals, zone = int(found[6] or 0), found[7] or "", (found[8] or "Z").upper()
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError as error:
        raise ValueError(f"is no time: {error}") from error
    moment = whole - _offset_s(zone) + (int(decimals) / 10 ** len(decimals) if decimals else 0.0)
    if not isfinite(moment) or moment < 0.0:
        raise ValueError("is before 1970")
    return moment


def _offset_s(zone: str) -> float:
    if zone in ("Z", "UTC"):
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 14 or minutes > 59:  # noqa: PLR2004 - no zone is further from UTC
        raise ValueError("has a zone that does not exist")
    return (1 if zone[0] == "+" else -1) * (hours * 3600.0 + minutes * 60.0)
