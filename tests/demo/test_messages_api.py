"""The simulator's Anthropic side, where a client library does not look: headers, limits that count apart, events."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx2 as httpx
import pytest

from scheduler.providers.delays import retry_after_s
from scheduler.providers.ratelimits import read_rate_limits
from tests.support.provider import RunningProvider, running_provider

HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "simulated"}
QUESTION: dict[str, Any] = {
    "model": "sim-small",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "Say hello."}],
}


def ask(provider: RunningProvider, **more: object) -> httpx.Response:
    return ask_with(HEADERS, provider, **more)


def ask_with(headers: dict[str, str], provider: RunningProvider, **more: object) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=10.0) as client:
        return client.post(f"{provider.url}/v1/messages", json={**QUESTION, **more}, headers=headers)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_tokens": None}, "Field required"),
        ({"messages": [{"role": "system", "content": "x"}]}, "role"),
        ({"thinking": {"type": "enabled", "budget_tokens": 10}}, "budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "greater than"),
        ({"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5}, "maximum of 4"),
    ],
)
def test_what_the_api_would_refuse_is_refused(provider: RunningProvider, change: dict[str, object], said: str) -> None:
    answer = ask(provider, **change)
    body = answer.json()
    assert (answer.status_code, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
    assert said in body["error"]["message"]


def test_the_version_of_the_api_must_be_named(provider: RunningProvider) -> None:
    assert ask_with({"x-api-key": "simulated"}, provider).status_code == 400


def test_usage_in_a_stream_is_cumulative(provider: RunningProvider) -> None:
    whole = ask(provider).json()["usage"]
    lines = ask(provider, stream=True).text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert names == [event["type"] for event in events]
    assert (names[0], names[2], names[-2:]) == ("message_start", "ping", ["message_delta", "message_stop"])
    start, delta = events[0]["message"]["usage"], events[-2]["usage"]
    assert (start["input_tokens"], start["output_tokens"]) == (whole["input_tokens"], 1)
    assert delta["output_tokens"] == whole["output_tokens"] > 1


def test_input_and_output_are_limited_apart(provider: RunningProvider) -> None:
    provider.set_limits(input_tokens_per_minute=100_000, output_tokens_per_minute=40)
    first, refused = ask(provider), ask(provider)
    told = read_rate_limits(first.headers, now=time.time())
    assert (told.input_tokens.limit, told.output_tokens.limit) == (100_000, 40)
    assert told.input_tokens.remaining == 100_000
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert provider.stats()["refused_429"] == {"output_tokens": 1}
    wait_s = retry_after_s(refused.headers, None, now=time.time())
    made = first.json()["usage"]["output_tokens"]
    # Nothing was charged at the door, all at the end: below zero, and back to one token at 40 a minute.
    assert wait_s == pytest.approx((made - 40 + 1) * 60 / 40, abs=1.0)
    after = read_rate_limits(refused.headers, now=time.time()).output_tokens
    assert after.remaining == 0
    assert after.reset_s == pytest.approx(made * 60 / 40, abs=2.0)


def test_cached_input_is_not_charged_at_the_door(provider: RunningProvider) -> None:
    cached = [{"type": "text", "text": "a" * 4000, "cache_control": {"type": "ephemeral"}}]
    provider.set_limits(input_tokens_per_minute=1100)
    assert [ask(provider, system=cached).status_code for _ in range(3)] == [200, 200, 200]
    assert ask(provider, system="b" * 4000).status_code == 429
    assert provider.stats()["by_api"]["messages"]["tokens_cached"] == 2000


def test_accounts_have_limits_and_caches_of_their_own() -> None:
    with running_provider(rate=0.01, burst=1, scope="key") as provider:
        one, other = ({**HEADERS, "x-api-key": key} for key in ("one", "other"))
        statuses = [ask_with(headers, provider).status_code for headers in (one, one, other)]
    assert statuses == [200, 429, 200]
