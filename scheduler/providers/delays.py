"""How long a provider asks us to wait, out of every format that providers use.

Decides what is a believable delay: finite, not negative, at most `DELAY_MAX_S`. Anything else is unknown (None), never
zero, because zero would mean "at once". It must never read a clock: `now` is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from email.utils import parsedate_to_datetime
from typing import Final
from zoneinfo import ZoneInfo

from scheduler.providers.fields import error_object, header, mapping, text

DELAY_MAX_S: Final = 24 * 3600.0
"""A longer wait is taken for a mistake or a sentinel."""

VALUE_CHARS_MAX: Final = 64
_QUOTA_ZONE: Final = ZoneInfo("America/Los_Angeles")

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_GO_PART = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:h|ms|m|s|us|µs|μs|ns)"
_GO_DURATION = re.compile(f"(?:{_GO_PART})+")
_GO_TERM = re.compile(r"([0-9.]+)(h|ms|m|s|us|µs|μs|ns)")
_GO_UNIT_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_HTTP_DATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? ")

_PROSE = re.compile(
    rf"\b(?:try again|retry)\s+(?:in|after)\s+"
    rf"(?:(?P<go>(?:{_GO_PART})+)\b|(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>milliseconds?|seconds?|minutes?|hours?)\b)",
    re.IGNORECASE,
)
_PROSE_UNIT_S: Final = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}


def retry_after_s(headers: Mapping[str, str], body: object | None, *, now: float) -> float | None:
    """Seconds to wait before the next request, as the provider asked; None when it did not say, or said nonsense.

    The first believable one wins: `retry-after-ms`, `retry-after`, Gemini's RetryInfo in the body, a sentence in the
    error message. `x-ratelimit-reset-*` is not asked: it tells when a limit is wholly restored, not the next free slot.
    `body` is the parsed JSON, or the text. `now` is seconds since the epoch by our clock.
    """
    ms = header(headers, "retry-after-ms")
    if ms is not None and _NUMBER.fullmatch(ms):
        delay = believable(float(ms) / 1000.0)
        if delay is not None:
            return delay
    delay = parse_delay_s(header(headers, "retry-after"), now=provider_now(headers, now=now))
    if delay is not None:
        return delay
    error = error_object(body)
    delay = _retry_info_s(error)
    return delay if delay is not None else _prose_s(text(error.get("message")))


def parse_delay_s(value: str | None, *, now: float) -> float | None:
    """Seconds from a number of seconds, a Go duration (`6m0s`, `300µs`), RFC 3339, or an HTTP-date; else None.

    `now`, in seconds since the epoch, is subtracted from absolute times; one that has passed is unknown.
    """
    if value is None or len(value) > VALUE_CHARS_MAX:
        return None
    value = value.strip().strip('"')
    if _NUMBER.fullmatch(value):
        return believable(float(value))
    if _GO_DURATION.fullmatch(value):
        return _go_duration_s(value)
    moment = parse_moment(value)
    return believable(moment - now) if moment is not None else None


def parse_moment(value: str) -> float | None:
    """Seconds since the epoch from RFC 3339 or an HTTP-date, else None."""
    try:
        if _RFC3339.fullmatch(value):
            return datetime.fromisoformat(value.upper()).timestamp()
        if _HTTP_DATE.match(value):
            moment = parsedate_to_datetime(value)
            # The obsolete asctime form names no zone; HTTP says that every date is GMT.
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return None


def provider_now(headers: Mapping[str, str], *, now: float) -> float:
    """The provider's own idea of now, from its `Date` header, so that a skewed clock cancels out; else `now`."""
    date = header(headers, "date")
    moment = parse_moment(date) if date is not None and len(date) <= VALUE_CHARS_MAX else None
    return now if moment is None else moment


def until_quota_day_ends_s(now: float) -> float:
    """Seconds until the next midnight in US Pacific time, when Gemini's daily quotas are whole again; above 0."""
    here = datetime.fromtimestamp(now, _QUOTA_ZONE)
    midnight = datetime.combine(here.date() + timedelta(days=1), time.min, _QUOTA_ZONE)
    return midnight.timestamp() - now


def believable(delay_s: float) -> float | None:
    """The delay if it is finite and within [0, DELAY_MAX_S], else None."""
    return delay_s if 0.0 <= delay_s <= DELAY_MAX_S else None


def _go_duration_s(value: str) -> float | None:
    return believable(sum(float(number) * _GO_UNIT_S[unit] for number, unit in _GO_TERM.findall(value)))


def _retry_info_s(error: Mapping[str, object]) -> float | None:
    """Gemini: `error.details[]` holds `{"@type": "…/google.rpc.RetryInfo", "retryDelay": "18s"}`."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        delay = text(mapping(detail).get("retryDelay"))
        if delay is not None and len(delay) <= VALUE_CHARS_MAX and _GO_DURATION.fullmatch(delay):
            return _go_duration_s(delay)
    return None


def _prose_s(message: str | None) -> float | None:
    """Sentences such as "Please try again in 6m0s", "Please retry in 18.46s", "retry after 86400 seconds"."""
    found = _PROSE.search(message) if message is not None else None
    if found is None:
        return None
    if found["go"]:
        return _go_duration_s(found["go"])
    return believable(float(found["number"]) * _PROSE_UNIT_S[found["unit"].lower().removesuffix("s")])
