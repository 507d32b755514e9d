"""Times and delays in the spellings that providers use.

Decides text only. It must never read a clock: moments are arguments, in seconds since the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Final


def go_duration(seconds: float) -> str:
    """As Go prints a duration: `0s`, `12ms`, `7.66s`, `6m0s`, `1h0m0s`. Rounded up to a millisecond."""
    milliseconds = math.ceil(seconds * 1000 - 1e-6)
    if milliseconds <= 0:
        return "0s"
    if milliseconds < 1000:  # noqa: PLR2004 - milliseconds in a second
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{tail}"
    return f"{minutes}m{tail}" if minutes else tail


def http_date(moment: float) -> str:
    """As in a `Date` header, whole seconds."""
    return formatdate(moment, usegmt=True)


def rfc3339(moment: float) -> str:
    """UTC with milliseconds."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Headers = list[tuple[str, str]]

_RETRY_AFTER: Final[Mapping[str, Callable[[float, float], Headers]]] = {
    "seconds": lambda delay, _now: [("retry-after", str(math.ceil(delay)))],
    "fraction": lambda delay, _now: [("retry-after", f"{math.ceil(delay * 1000) / 1000:g}")],
    "ms": lambda delay, _now: [("retry-after-ms", str(math.ceil(delay * 1000)))],
    "both": lambda delay, _now: [
        ("retry-after", str(math.ceil(delay))),
        ("retry-after-ms", str(math.ceil(delay * 1000))),
    ],
    "http-date": lambda delay, now: [("retry-after", http_date(math.ceil(now + delay)))],
    "rfc3339": lambda delay, now: [("retry-after", rfc3339(now + delay))],
    "go-duration": lambda delay, _now: [("retry-after", go_duration(delay))],
    "body": lambda _delay, _now: [],
    "message": lambda _delay, _now: [],
    "none": lambda _delay, _now: [],
}
RETRY_AFTER_FORMATS: Final = tuple(_RETRY_AFTER)
"""`body` is Gemini's RetryInfo, `message` a sentence in the error's text, `none` a provider that does not say."""


def retry_after_headers(delay_s: float, spelling: str, *, now: float) -> Headers:
    """The headers that ask for a delay; `now` is the provider's clock."""
    return _RETRY_AFTER[spelling](delay_s, now)
