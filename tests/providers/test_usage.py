"""Buckets are disjoint, never negative, and add up to what the provider reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.providers.usage import (
    Usage,
    UsageSource,
    anthropic_usage,
    chat_completion_usage,
    embeddings_usage,
    estimate_tokens,
    estimated,
    gemini_usage,
    responses_usage,
)

COUNTS = st.integers(0, 10_000_000)


def test_openai_counts_cached_input_inside_the_prompt_and_reasoning_inside_the_completion() -> None:
    usage = chat_completion_usage(
        {
            "prompt_tokens": 1000,
            "completion_tokens": 300,
            "total_tokens": 1300,
            "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
            "completion_tokens_details": {"reasoning_tokens": 250, "rejected_prediction_tokens": 5},
        }
    )
    assert usage == Usage(input_uncached=300, cache_read=600, cache_write=100, output_visible=50, output_reasoning=250)
    assert usage.total == 1300


def test_a_compatible_provider_that_leaves_reasoning_out_is_seen_by_its_total() -> None:
    usage = chat_completion_usage(
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 115,
            "completion_tokens_details": {"reasoning_tokens": 100},
        }
    )
    assert usage == Usage(input_uncached=10, output_visible=5, output_reasoning=100)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_openai_buckets_add_up_whatever_the_details_say(
    prompt: int, completion: int, cached: int, written: int, reasoning: int
) -> None:
    chat = chat_completion_usage(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    )
    responses = responses_usage(
        {
            "input_tokens": prompt,
            "output_tokens": completion,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "output_tokens_details": {"reasoning_tokens": reasoning},
        }
    )
    assert chat is not None
    assert chat == responses
    assert (chat.input_total, chat.output_total) == (prompt, completion)
    assert all(value >= 0 for value in chat.as_json().values() if isinstance(value, int))


@pytest.mark.parametrize("bad", [None, -1, True, "7", 1.5, float("nan"), float("inf"), 1e300, [], {}])
def test_usage_that_cannot_be_read_is_none_and_never_zero(bad: object) -> None:
    assert chat_completion_usage({"prompt_tokens": bad, "completion_tokens": 1}) is None
    assert chat_completion_usage({"prompt_tokens": 1, "completion_tokens": bad}) is None
    assert responses_usage({"input_tokens": bad, "output_tokens": 1}) is None
    assert responses_usage({"input_tokens": 1, "output_tokens": bad}) is None
    assert embeddings_usage({"prompt_tokens": bad}) is None
    assert anthropic_usage({"input_tokens": bad, "output_tokens": 1}) is None
    assert anthropic_usage({"input_tokens": 1, "output_tokens": bad}) is None
    assert gemini_usage({"promptTokenCount": bad}) is None
    assert chat_completion_usage(bad) is None


def test_whole_floats_are_counts() -> None:
    assert embeddings_usage({"prompt_tokens": 7.0}) == Usage(input_uncached=7)


def test_anthropic_counts_cached_input_beside_the_input() -> None:
    usage = anthropic_usage(
        {
            "input_tokens": 50,
            "output_tokens": 40,
            "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
            "output_tokens_details": {"thinking_tokens": 30},
        }
    )
    assert usage == Usage(
        input_uncached=50, cache_read=1000, cache_write=100, cache_write_1h=200, output_visible=10, output_reasoning=30
    )
    assert usage.input_total == 1350


def test_anthropic_deltas_are_cumulative_and_never_added_up() -> None:
    start = {"input_tokens": 900, "output_tokens": 1, "cache_read_input_tokens": 0}
    first = {"output_tokens": 20, "input_tokens": None}
    last = {"output_tokens": 55, "input_tokens": 100, "cache_read_input_tokens": 800}
    assert anthropic_usage(start, first) == Usage(input_uncached=900, output_visible=20)
    assert anthropic_usage(start, first, last) == Usage(input_uncached=100, cache_read=800, output_visible=55)
    assert anthropic_usage() is None


def test_gemini_leaves_thoughts_out_of_its_candidates() -> None:
    usage = gemini_usage(
        {
            "promptTokenCount": 500,
            "cachedContentTokenCount": 200,
            "candidatesTokenCount": 40,
            "thoughtsTokenCount": 60,
            "toolUsePromptTokenCount": 25,
            "totalTokenCount": 625,
        }
    )
    assert usage == Usage(input_uncached=325, cache_read=200, output_visible=40, output_reasoning=60)
    assert usage.total == 625


def test_an_estimate_is_never_free() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("abcde") == 2
    usage = estimated(input_tokens=12, output_text="abcd")
    assert usage == Usage(input_uncached=12, output_visible=1, source=UsageSource.ESTIMATED)
    assert usage.as_json()["source"] == "estimated"
