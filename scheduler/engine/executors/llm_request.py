"""A task's payload as a request to an OpenAI-compatible API.

Decides which payloads are calls at all, and the few things that we set in them: the model where none is named, the
usage report of a stream, and no tools for an attempt that should only answer. It must never change what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.engine.executors.base import Permanent
from scheduler.engine.executors.llm_config import LlmConfig
from scheduler.providers.fields import count, mapping, text
from scheduler.providers.usage import estimate_tokens

OUTPUT_FIELDS: Final = ("max_completion_tokens", "max_tokens")
TOOL_FIELDS: Final = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """A request ready to be sent. `input_tokens_estimate` is for calls whose usage is never reported."""

    path: str
    body: bytes
    model: str
    embeds: bool
    streams: bool
    input_tokens_estimate: int


def build_request(
    config: LlmConfig, payload: object, *, answer_only: bool, max_output_tokens: int | None = None
) -> LlmRequest:
    """Build the request; `max_output_tokens` is what its budgets pay for.

    Raises Permanent, with a sentence, when the payload is no call.
    """
    if not isinstance(payload, Mapping):
        raise Permanent("the payload must be an object with 'messages' or 'input'")
    fields = dict(payload)
    embeds = "input" in fields
    if embeds == ("messages" in fields):
        raise Permanent("the payload must hold 'messages' (a chat) or 'input' (embeddings), and not both")
    if not embeds and not (isinstance(fields["messages"], list) and fields["messages"]):
        raise Permanent("'messages' must be a list that is not empty")
    model = text(fields.get("model")) or config.model
    if model is None:
        raise Permanent("the payload names no 'model' and the pool has no default")
    fields["model"] = model
    streams = not embeds and fields.get("stream") is True
    if embeds:
        fields.pop("stream", None)
    if streams:
        fields["stream_options"] = {**mapping(fields.get("stream_options")), "include_usage": True}
    if max_output_tokens is not None and not embeds:
        fields |= _clamped(fields, max_output_tokens)
    if answer_only:
        fields = {name: value for name, value in fields.items() if name not in TOOL_FIELDS}
    try:
        body = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Permanent("the payload cannot be written as JSON") from error
    asked = fields["input"] if embeds else fields["messages"]
    return LlmRequest(
        path="/embeddings" if embeds else "/chat/completions",
        body=body,
        model=model,
        embeds=embeds,
        streams=streams,
        input_tokens_estimate=estimate_tokens(json.dumps(asked, ensure_ascii=False)),
    )


def _clamped(fields: Mapping[str, object], tokens: int) -> dict[str, int]:
    """The limits of the output that the request names, lowered; one where it names none."""
    named = [name for name in OUTPUT_FIELDS if count(fields.get(name))] or ["max_tokens"]
    return {name: min(tokens, count(fields.get(name)) or tokens) for name in named}
