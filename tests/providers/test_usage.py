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
    cut_short,
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
            "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1},
            "service_tier": "priority",
        }
    )
    assert usage == Usage(
        input_uncached=50,
        cache_read=1000,
        cache_write=100,
        cache_write_1h=200,
        output_visible=10,
        output_reasoning=30,
        web_searches=3,
        service_tier="priority",
    )
    assert usage.input_total == 1350


def test_anthropic_deltas_are_cumulative_and_never_added_up() -> None:
    start = {"input_tokens": 900, "output_tokens": 1, "cache_read_input_tokens": 0}
    first = {"output_tokens": 20, "input_tokens": None}
    last = {"output_tokens": 55, "input_tokens": 100, "cache_read_input_tokens": 800}
    assert anthropic_usage(start, first) == Usage(input_uncached=900, output_visible=20)
    assert anthropic_usage(start, first, last) == Usage(input_uncached=100, cache_read=800, output_visible=55)
    assert anthropic_usage() is None


@given(st.tuples(*[COUNTS] * 6), st.none() | COUNTS)
def test_anthropic_buckets_add_up_whatever_the_details_say(counts: tuple[int, ...], written: int | None) -> None:
    plain, output, read, written_5m, written_1h, thinking = counts
    usage = anthropic_usage(
        {
            "input_tokens": plain,
            "output_tokens": output,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written_5m, "ephemeral_1h_input_tokens": written_1h},
            "output_tokens_details": {"thinking_tokens": thinking},
        }
    )
    assert usage is not None
    assert usage.input_total == plain + read + (written_5m + written_1h if written is None else written)
    assert usage.output_total == output
    assert all(value >= 0 for value in usage.as_json().values() if isinstance(value, int))


@given(st.lists(st.fixed_dictionaries({}, optional={"input_tokens": st.none() | COUNTS, "output_tokens": COUNTS})))
def test_anthropic_tells_the_last_value_that_is_there(updates: list[dict[str, int | None]]) -> None:
    usage = anthropic_usage({"input_tokens": 7, "output_tokens": 1}, *updates)
    assert usage is not None
    inputs = [7, *(n for update in updates if (n := update.get("input_tokens")) is not None)]
    outputs = [1, *(n for update in updates if (n := update.get("output_tokens")) is not None)]
    assert (usage.input_total, usage.output_total) == (inputs[-1], outputs[-1])


@given(st.none() | st.builds(Usage, input_uncached=COUNTS, output_visible=COUNTS, output_reasoning=COUNTS), st.text())
def test_an_answer_that_broke_off_is_never_free_and_never_less_than_was_told(told: Usage | None, seen: str) -> None:
    usage = cut_short(told, input_tokens=12, output_text=seen)
    assert usage.source is not UsageSource.REPORTED
    assert usage.input_total == (12 if told is None else told.input_total)
    assert usage.output_total == max(estimate_tokens(seen), 0 if told is None else told.output_total)
    assert (usage.source is UsageSource.UNKNOWN) is (told is None and not seen)


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
