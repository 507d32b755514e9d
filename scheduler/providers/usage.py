"""What a call used, in one shape for every provider.

Decides how each provider's usage object maps to disjoint buckets, because some count cached input inside the input
(OpenAI, Gemini) and some beside it (Anthropic). The buckets never overlap, are never negative, and add up to the
provider's own total where it gives one. It must never invent a zero: usage that cannot be read is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final

from scheduler.providers.fields import count, mapping, text

CHARS_PER_TOKEN: Final = 4
"""The usual rule of thumb for English text; good enough to keep an account from reading zero."""


class UsageSource(StrEnum):
    """How far the numbers can be trusted."""

    REPORTED = "reported"
    """The provider's own numbers."""
    ESTIMATED = "estimated"
    """Our estimate, from the text that went out and came back."""
    UNKNOWN = "unknown"
    """The request went out and its end was not seen; the numbers are a floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call in disjoint buckets; `cache_write_1h` is the long-lived cache, which costs more to write.

    `web_searches` are billed each, on top of the tokens. `service_tier` is the one that served the call, as the answer
    tells it; it may be another than was asked for, and goes with another price. `model` is the one that was called.
    """

    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output_visible: int = 0
    output_reasoning: int = 0
    web_searches: int = 0
    source: UsageSource = UsageSource.REPORTED
    service_tier: str | None = None
    model: str | None = None

    @property
    def input_total(self) -> int:
        """All input tokens, cached or not."""
        return self.input_uncached + self.cache_read + self.cache_write + self.cache_write_1h

    @property
    def output_total(self) -> int:
        """All output tokens, visible or not."""
        return self.output_visible + self.output_reasoning

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input_total + self.output_total

    def as_json(self) -> dict[str, int | str | None]:
        """The buckets by name, and `source`, `service_tier` and `model`."""
        return {**asdict(self), "source": self.source.value}


def estimate_tokens(text: str) -> int:
    """Tokens in a text by the rule of thumb, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def estimated(*, input_tokens: int, output_text: str, source: UsageSource = UsageSource.ESTIMATED) -> Usage:
    """Usage of a call that did not report any: the input it was sent with, and what came back."""
    return Usage(input_uncached=input_tokens, output_visible=estimate_tokens(output_text), source=source)


def cut_short(reported: Usage | None, *, input_tokens: int, output_text: str) -> Usage:
    """Usage of an answer that broke off: a floor, because the provider may have gone on and bills what it made.

    What was reported until then stands for the input; of the output the larger counts, because a stream reports it at
    its end, or as one token at its beginning. `unknown` when nothing of the answer was seen.
    """
    if reported is None:
        source = UsageSource.ESTIMATED if output_text else UsageSource.UNKNOWN
        return estimated(input_tokens=input_tokens, output_text=output_text, source=source)
    unreported = max(0, estimate_tokens(output_text) - reported.output_total)
    return replace(reported, output_visible=reported.output_visible + unreported, source=UsageSource.ESTIMATED)


def chat_completion_usage(usage: object) -> Usage | None:
    """OpenAI chat completions. Cached input is part of `prompt_tokens`; reasoning is part of `completion_tokens`.

    Some compatible providers leave reasoning out of `completion_tokens`; their total tells.
    """
    fields = mapping(usage)
    prompt, completion = count(fields.get("prompt_tokens")), count(fields.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    reasoning = _detail(fields, "completion_tokens_details", "reasoning_tokens")
    if reasoning and count(fields.get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    return _inclusive(
        input_total=prompt,
        cache_read=_detail(fields, "prompt_tokens_details", "cached_tokens"),
        cache_write=_detail(fields, "prompt_tokens_details", "cache_write_tokens"),
        output_total=completion,
        reasoning=reasoning,
    )


def embeddings_usage(usage: object) -> Usage | None:
    """OpenAI embeddings: input only."""
    prompt = count(mapping(usage).get("prompt_tokens"))
    return None if prompt is None else Usage(input_uncached=prompt)


def responses_usage(usage: object) -> Usage | None:
    """OpenAI responses: as chat completions, under other names."""
    fields = mapping(usage)
    input_total, output_total = count(fields.get("input_tokens")), count(fields.get("output_tokens"))
    if input_total is None or output_total is None:
        return None
    return _inclusive(
        input_total=input_total,
        cache_read=_detail(fields, "input_tokens_details", "cached_tokens"),
        cache_write=_detail(fields, "input_tokens_details", "cache_write_tokens"),
        output_total=output_total,
        reasoning=_detail(fields, "output_tokens_details", "reasoning_tokens"),
    )


def anthropic_usage(*updates: object) -> Usage | None:
    """Anthropic messages: `input_tokens` leaves out cache reads and writes.

    Give the usage of `message_start` and then of each `message_delta`: they are cumulative, so the last value that is
    there wins for each field and nothing is ever added up. Compatible providers were seen to count the whole input in
    `message_start` and to tell its parts in `message_delta` only.
    """
    fields: dict[str, object] = {}
    for update in updates:
        fields.update({name: value for name, value in mapping(update).items() if value is not None})
    input_tokens, output = count(fields.get("input_tokens")), count(fields.get("output_tokens"))
    if input_tokens is None or output is None:
        return None
    written_5m = _detail(fields, "cache_creation", "ephemeral_5m_input_tokens")
    written_1h = _detail(fields, "cache_creation", "ephemeral_1h_input_tokens")
    total = count(fields.get("cache_creation_input_tokens"))
    written = written_5m + written_1h if total is None else total
    written_1h = min(written, written_1h)
    thinking = min(output, _detail(fields, "output_tokens_details", "thinking_tokens"))
    return Usage(
        input_uncached=input_tokens,
        cache_read=count(fields.get("cache_read_input_tokens")) or 0,
        cache_write=written - written_1h,
        cache_write_1h=written_1h,
        output_visible=output - thinking,
        output_reasoning=thinking,
        web_searches=_detail(fields, "server_tool_use", "web_search_requests"),
        service_tier=text(fields.get("service_tier")),
    )


def gemini_usage(usage: object) -> Usage | None:
    """Gemini `usageMetadata`: the prompt holds its cached part, the candidates leave thoughts out, tools are input."""
    fields = mapping(usage)
    prompt = count(fields.get("promptTokenCount"))
    if prompt is None:
        return None
    cached = min(prompt, count(fields.get("cachedContentTokenCount")) or 0)
    return Usage(
        input_uncached=prompt - cached + (count(fields.get("toolUsePromptTokenCount")) or 0),
        cache_read=cached,
        output_visible=count(fields.get("candidatesTokenCount")) or 0,
        output_reasoning=count(fields.get("thoughtsTokenCount")) or 0,
    )


def _inclusive(*, input_total: int, cache_read: int, cache_write: int, output_total: int, reasoning: int) -> Usage:
    """Split totals that hold their parts; a part larger than what is left of its whole is cut to fit."""
    cache_read = min(cache_read, input_total)
    cache_write = min(cache_write, input_total - cache_read)
    reasoning = min(reasoning, output_total)
    return Usage(
        input_uncached=input_total - cache_read - cache_write,
        cache_read=cache_read,
        cache_write=cache_write,
        output_visible=output_total - reasoning,
        output_reasoning=reasoning,
    )


def _detail(fields: Mapping[str, object], group: str, name: str) -> int:
    return count(mapping(fields.get(group)).get(name)) or 0
