"""Known usage of each API, priced to the published figure from the installed data."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler.policy.money import format_usd
from scheduler.policy.prices import Band, PriceTable, Rates, buckets_of, cost_of
from scheduler.providers.catalog import published
from scheduler.providers.requests import read_call
from scheduler.providers.usage import (
    Usage,
    anthropic_usage,
    chat_completion_usage,
    embeddings_usage,
    gemini_usage,
    responses_usage,
)

AT = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


def price(usage: Usage | None, model: str, **where: str) -> str:
    found = published(model, at=AT, **where)
    assert found is not None, model
    assert usage is not None
    table = PriceTable(tuple(Band(above, Rates(*rates)) for above, rates in found.bands))
    return format_usd(cost_of(table, buckets_of(usage.as_json())))


def test_an_anthropic_call_that_writes_the_cache_costs_it_once() -> None:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 12_304,
        "cache_read_input_tokens": 0,
        "output_tokens": 550,
    }
    assert price(anthropic_usage(usage), "claude-3-7-sonnet-20250219") == "0.054399"


def test_an_anthropic_stream_is_not_added_up() -> None:
    start = {"input_tokens": 1_000, "cache_read_input_tokens": 100_000, "output_tokens": 1}
    end = {"output_tokens": 2_000, "cache_creation": None}
    # 1,000 × $3 + 100,000 × $0.30 + 2,000 × $15, per million
    assert price(anthropic_usage(start, end), "claude-sonnet-4-5") == "0.063"


def test_an_anthropic_write_for_an_hour_costs_twice_the_input() -> None:
    usage = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_creation_input_tokens": 10_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 10_000},
    }
    assert price(anthropic_usage(usage), "claude-sonnet-4-5") == "0.06"


def test_an_openai_chat_with_cached_input() -> None:
    usage = {
        "prompt_tokens": 10_000,
        "completion_tokens": 1_000,
        "total_tokens": 11_000,
        "prompt_tokens_details": {"cached_tokens": 8_000},
    }
    # 2,000 × $2.50 + 8,000 × $1.25 + 1,000 × $10, per million
    assert price(chat_completion_usage(usage), "gpt-4o") == "0.025"


def test_an_openai_response_that_reasons() -> None:
    usage = {"input_tokens": 1_000, "output_tokens": 5_000, "output_tokens_details": {"reasoning_tokens": 4_000}}
    # 1,000 × $1.25 + 5,000 × $10, per million: thinking is output
    assert price(responses_usage(usage), "gpt-5") == "0.05125"


def test_openai_embeddings_cost_their_input() -> None:
    base_url = "https://api.openai.com/v1"
    assert price(embeddings_usage({"prompt_tokens": 1_000_000}), "text-embedding-3-small", base_url=base_url) == "0.02"


def test_gemini_thoughts_and_long_prompts() -> None:
    usage = {"promptTokenCount": 1_000, "candidatesTokenCount": 100, "thoughtsTokenCount": 900}
    assert price(gemini_usage(usage), "gemini-2.5-pro") == "0.01125"
    usage = {"promptTokenCount": 300_000, "cachedContentTokenCount": 100_000, "candidatesTokenCount": 1_000}
    # above 200,000 tokens: 200,000 × $2.50 + 100,000 × $0.25 + 1,000 × $15, per million
    assert price(gemini_usage(usage), "gemini-2.5-pro") == "0.54"


def test_a_service_tier_has_its_own_price() -> None:
    standard, flex, odd = (published("o3", at=AT, tier=tier) for tier in (None, "flex", "auto"))
    assert standard is not None
    assert flex is not None
    assert odd == standard
    assert flex.bands[0][1][0] * 2 == standard.bands[0][1][0]


def test_prices_change_with_time() -> None:
    before, after = (published("o3", at=datetime(2025, 6, day, tzinfo=UTC).timestamp()) for day in (9, 10))
    assert before is not None
    assert after is not None
    assert (before.bands[0][1][0], after.bands[0][1][0]) == (10_000_000_000, 2_000_000_000)


@pytest.mark.parametrize("model", ["sim-small", "no-such-model", ""])
def test_a_model_that_is_not_known_has_no_price(model: str) -> None:
    assert published(model, at=AT) is None
    assert published("gpt-4o", at=AT, provider="no-such-house") is None


def test_a_model_that_comes_with_a_subscription_has_no_price() -> None:
    assert published("gpt-4o-mini", at=AT, provider="github-copilot") is None


def test_a_request_in_figures() -> None:
    call = read_call(
        {"model": "m", "messages": [{"content": "x" * 400}], "max_tokens": 50, "n": 2, "service_tier": "flex"}
    )
    assert (call.model, call.tier, call.output_most, call.answers, call.has_output) == ("m", "flex", 50, 2, True)
    assert call.input_most > 400 > call.input_likely >= 100
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    seen = read_call({"messages": [{"content": [{"type": "text", "text": "?"}, image]}]}, model="d")
    assert (seen.model, seen.output_most) == ("d", None)
    assert seen.input_most > 6_000
    assert not read_call({"model": "e", "input": "text"}).has_output
    assert read_call({"model": "e", "input": "text", "max_output_tokens": 5}).has_output
    assert read_call({"model": "e", "input": "text", "api": "responses"}).has_output
    assert read_call("nonsense").model is None
    cached = {"content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}
    assert read_call({"messages": [cached]}).writes_1h
