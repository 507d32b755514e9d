"""What a provider's rate-limit headers say is left.

Decides which headers carry a limit, in the OpenAI family and in Anthropic's, and that a sentinel (-1, an empty value, a
limit of zero with nothing left) is unknown. It must never turn a missing header into zero. Who reads the result may
lower a level by it, never raise one: the answer was written before what is in flight now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.providers.delays import parse_delay_s, provider_now
from scheduler.providers.fields import header
from scheduler.providers.token_weights import TokenLimit

_WHOLE = re.compile(r"[0-9]{1,15}")
_THOUSANDS_FROM: Final = 10_000
_FAMILIES: Final = {
    "x-ratelimit-{part}-{what}": ("requests", "tokens"),
    "anthropic-ratelimit-{what}-{part}": ("requests", "tokens", "input-tokens", "output-tokens"),
}


@dataclass(frozen=True, slots=True)
class Window:
    """One limit: `remaining` of `limit`, wholly restored in `reset_s` seconds. None is unknown."""

    remaining: int | None = None
    limit: int | None = None
    reset_s: float | None = None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits that one answer told. `input_tokens` and `output_tokens` are told by Anthropic only."""

    requests: Window = Window()
    tokens: Window = Window()
    input_tokens: Window = Window()
    output_tokens: Window = Window()


def read_rate_limits(headers: Mapping[str, str], *, now: float) -> RateLimits:
    """Limits out of an answer's headers. `now` is seconds since the epoch; the answer's own `Date` goes before it."""
    now = provider_now(headers, now=now)
    headers = {name: value for name, value in headers.items() if "ratelimit" in name.lower()}
    if not headers:
        return RateLimits()
    windows: dict[str, Window] = {}
    for pattern, whats in _FAMILIES.items():
        for what in whats:
            window = _window(headers, pattern.replace("{what}", what), now=now)
            if window != Window():
                windows[what.replace("-", "_")] = window
    return RateLimits(**windows)


def scarce(limits: RateLimits, *, requests: str | None, tokens: Mapping[str, TokenLimit]) -> dict[str, float]:
    """What is left of our limits, by name, as far as the provider told and less than half of it is left.

    `requests` is the name of the limit that counts requests; `tokens` those that count tokens, each of which is told by
    the window that counts what it counts. More than half left cannot hold anything back soon. What a provider may have
    rounded off is added: who alone uses a quota is never told less than what is there.
    """
    windows = {} if requests is None else {requests: limits.requests}
    for name, limit in tokens.items():
        counts = (limit.weights.input > 0, limit.weights.output > 0)
        windows[name] = {(True, False): limits.input_tokens, (False, True): limits.output_tokens}.get(
            counts, limits.tokens
        )
    return {
        name: window.remaining + _rounded_off(window.remaining, window.limit)
        for name, window in windows.items()
        if window.remaining is not None and window.limit is not None and window.remaining < window.limit / 2
    }


def _rounded_off(remaining: int, limit: int) -> float:
    """The most by which a provider may have rounded down what is left: to a whole number, or to thousands."""
    in_thousands = remaining % 1000 == 0 and limit >= _THOUSANDS_FROM
    return 500.0 if in_thousands else 1.0


def _window(headers: Mapping[str, str], pattern: str, *, now: float) -> Window:
    limit = _whole(header(headers, pattern.replace("{part}", "limit")))
    remaining = _whole(header(headers, pattern.replace("{part}", "remaining")))
    if limit is None and header(headers, pattern.replace("{part}", "limit")) is not None:
        # A limit that is a sentinel (Azure was seen to send -1 / -1 / 0) makes its companions worthless too.
        return Window()
    if limit == 0:
        return Window()
    return Window(
        remaining=remaining,
        limit=limit,
        reset_s=parse_delay_s(header(headers, pattern.replace("{part}", "reset")), now=now),
    )


def _whole(value: str | None) -> int | None:
    return int(value) if value is not None and _WHOLE.fullmatch(value) else None
