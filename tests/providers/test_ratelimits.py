"""Rate-limit headers are read; sentinels and absent ones are unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.providers.ratelimits import RateLimits, Window, read_rate_limits, scarce
from scheduler.providers.token_weights import TokenLimit, Weights

NOW = 1_796_040_000.0


def test_openai() -> None:
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert read_rate_limits(headers, now=NOW) == RateLimits(
        requests=Window(remaining=59, limit=60, reset_s=1.0),
        tokens=Window(remaining=149_984, limit=150_000, reset_s=360.0),
    )


def test_anthropic_tells_when_instead_of_how_long() -> None:
    headers = {
        "Date": "Mon, 30 Nov 2026 12:00:00 GMT",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-30T12:00:12Z",
        "anthropic-ratelimit-input-tokens-remaining": "31000",
        "anthropic-ratelimit-output-tokens-limit": "8000",
    }
    assert read_rate_limits(headers, now=0.0) == RateLimits(
        requests=Window(remaining=0, limit=50, reset_s=12.0),
        input_tokens=Window(remaining=31_000),
        output_tokens=Window(limit=8000),
    )


@pytest.mark.parametrize(
    ("limit", "remaining", "reset"), [("-1", "-1", "0"), ("0", "0", "0"), ("", "", ""), ("x", "5", "1s")]
)
def test_sentinels_are_unknown(limit: str, remaining: str, reset: str) -> None:
    headers = {
        "x-ratelimit-limit-tokens": limit,
        "x-ratelimit-remaining-tokens": remaining,
        "x-ratelimit-reset-tokens": reset,
    }
    found = read_rate_limits(headers, now=NOW).tokens
    assert found.limit is None
    assert found.remaining is None


def test_no_headers_tell_nothing() -> None:
    assert read_rate_limits({"content-type": "application/json"}, now=NOW) == RateLimits()


def test_remaining_alone_is_kept_and_a_bare_number_is_seconds() -> None:
    headers = {"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "60"}
    assert read_rate_limits(headers, now=NOW).requests == Window(remaining=7, reset_s=60.0)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_header_raises(limit: str, remaining: str, reset: str) -> None:
    found = read_rate_limits(
        {
            "x-ratelimit-limit-requests": limit,
            "x-ratelimit-remaining-requests": remaining,
            "x-ratelimit-reset-requests": reset,
        },
        now=NOW,
    ).requests
    assert found.remaining is None or found.remaining >= 0


@pytest.mark.parametrize(
    ("weights", "window"),
    [
        (Weights(), "tokens"),
        (Weights(output=0.0), "input_tokens"),
        (Weights(input=0.0, cache_read=0.0, cache_write=0.0), "output_tokens"),
    ],
)
def test_each_limit_on_tokens_is_told_by_the_window_that_counts_what_it_counts(weights: Weights, window: str) -> None:
    limits = RateLimits(**{window: Window(remaining=4, limit=10)})
    assert scarce(limits, requests=None, tokens={"tpm": TokenLimit(weights)}) == {"tpm": 5.0}


def test_only_what_runs_low_is_told() -> None:
    def left(remaining: int | None, limit: int | None) -> dict[str, float]:
        return scarce(RateLimits(requests=Window(remaining, limit)), requests="rpm", tokens={})

    assert left(4, 10) == {"rpm": 5.0}
    assert left(0, 10) == {"rpm": 1.0}
    assert left(3_000, 80_000) == {"rpm": 3_500.0}
    assert left(3_001, 80_000) == {"rpm": 3_002.0}
    assert left(5, 10) == left(None, 10) == left(4, None) == {}
    assert scarce(RateLimits(requests=Window(0, 10)), requests=None, tokens={}) == {}
