"""Anthropic's messages: `POST /v1/messages`.

Decides the shape of requests, answers and events. It must never decide whether to answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scheduler.demo.provider_sim import content
from scheduler.demo.provider_sim.anthropic_manners import ANTHROPIC_MANNERS, OVERLOADED
from scheduler.demo.provider_sim.api import Json, event
from scheduler.demo.provider_sim.asks import (
    Answer,
    Ask,
    answer_length,
    invalid,
    read_fields,
    read_messages,
    read_model,
    read_whole,
)
from scheduler.demo.provider_sim.chat_api import STREAM_CHUNKS_MAX
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.prompt_cache import Mark, prefix_digest
from scheduler.demo.provider_sim.settings import Settings

THINKING_TOKENS_MIN: Final = 1024
MARKS_MAX: Final = 4
SIGNATURE: Final = "c2ltdWxhdGVk"


class MessagesApi:
    """Messages, whole or as events whose usage is cumulative."""

    name: Final = "messages"
    manners: Final = ANTHROPIC_MANNERS
    end: Final = b""
    stream_error: Final = event(OVERLOADED, "error")

    def parse(self, request: Request, settings: Settings) -> Ask:
        """Read a request. Raises Refused."""
        if "anthropic-version" not in request.headers:
            raise invalid("anthropic-version", "header is required")
        fields = read_fields(request.body)
        model, messages = read_model(fields), read_messages(fields)
        if any(message.get("role") not in ("user", "assistant") for message in messages if isinstance(message, dict)):
            raise invalid("messages", "a role must be 'user' or 'assistant'; instructions go into 'system'")
        cap = read_whole(fields, "max_tokens")
        if cap is None:
            raise invalid("max_tokens", "Field required")
        thinking = _thinking_tokens(fields, cap)
        prompt = content.prompt_text([{"content": fields.get("system")}, *messages])
        length = answer_length(model, prompt, settings, cap=cap)
        thought = min(thinking, length.output_tokens, max(0, cap - length.output_tokens))
        return Ask(
            model=model,
            prompt=prompt,
            input_tokens=length.input_tokens,
            output_tokens=length.output_tokens + thought,
            reasoning_tokens=thought,
            tokens_at_door=length.input_tokens,
            counts_apart=True,
            cut_short=length.cut_short,
            streams=fields.get("stream") is True,
            service_tier="standard",
            marks=tuple(_marks([{"content": fields.get("system")}, *messages])),
            latency_s=length.latency_s,
        )

    def whole(self, answer: Answer) -> Json:
        """A message with its text, and before it what was thought."""
        blocks: list[Json] = [{"type": "text", "text": answer.text, "citations": None}]
        if answer.ask.reasoning_tokens:
            blocks.insert(0, {"type": "thinking", "thinking": _thought(answer), "signature": SIGNATURE})
        return _message(answer, blocks, _stop_reason(answer.ask)) | _told(answer, _usage(answer, _output(answer)))

    def events(self, answer: Answer) -> list[bytes]:
        """From `message_start`, whose usage is a beginning, to `message_delta`, whose usage is the whole."""
        start = _message(answer, [], None) | _told(answer, _usage(answer, {"output_tokens": 1}))
        told: list[Json] = [{"type": "message_start", "message": start}]
        if answer.ask.reasoning_tokens:
            told += _block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                [{"type": "thinking_delta", "thinking": _thought(answer)}],
                [{"type": "signature_delta", "signature": SIGNATURE}],
            )
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in answer.pieces(STREAM_CHUNKS_MAX)]
        told += _block(int(answer.ask.reasoning_tokens > 0), {"type": "text", "text": "", "citations": None}, deltas)
        delta: Json = {"stop_reason": _stop_reason(answer.ask), "stop_sequence": None}
        told.append({"type": "message_delta", "delta": delta} | _told(answer, _output(answer)))
        told.append({"type": "message_stop"})
        told.insert(2, {"type": "ping"})
        return [event(each, str(each["type"])) for each in told]


def _thinking_tokens(fields: Json, cap: int) -> int:
    """The budget for thinking. Raises Refused for one that the API refuses."""
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return 0
    budget = read_whole(thinking, "budget_tokens") or 0
    if budget < THINKING_TOKENS_MIN:
        raise invalid("thinking.enabled.budget_tokens", f"Input should be at least {THINKING_TOKENS_MIN}")
    if budget >= cap:
        raise invalid("max_tokens", "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return budget


def _marks(messages: list[object]) -> Iterator[Mark]:
    """Where `cache_control` stands, counted over everything up to there. Raises Refused."""
    text, found = "", 0
    for message in messages:
        blocks = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else [blocks]:
            said = block.get("text") if isinstance(block, dict) else block
            text += f"{said}\n" if isinstance(said, str) else ""
            control = block.get("cache_control") if isinstance(block, dict) else None
            if isinstance(control, dict):
                found += 1
                if found > MARKS_MAX:
                    raise invalid("cache_control", f"A maximum of {MARKS_MAX} blocks may be cached.")
                long = control.get("ttl") == "1h"
                yield Mark(content.count_tokens(text[:-1]), prefix_digest(text), written=True, long=long)


def _message(answer: Answer, blocks: list[Json], stop_reason: str | None) -> Json:
    return {
        "id": f"msg_{answer.number:012x}",
        "type": "message",
        "role": "assistant",
        "model": answer.ask.model,
        "content": blocks,
        "stop_reason": stop_reason,
        "stop_sequence": None,
    }


def _block(index: int, empty: Json, *deltas: list[Json]) -> list[Json]:
    pieces: list[Json] = [
        {"type": "content_block_delta", "index": index, "delta": delta} for group in deltas for delta in group
    ]
    start: Json = {"type": "content_block_start", "index": index, "content_block": empty}
    return [start, *pieces, {"type": "content_block_stop", "index": index}]


def _thought(answer: Answer) -> str:
    return content.answer_text(answer.ask.model, "thinking", answer.ask.reasoning_tokens)


def _stop_reason(ask: Ask) -> str:
    return "max_tokens" if ask.cut_short else "end_turn"


def _told(answer: Answer, usage: Json) -> Json:
    # The API's own clients do without a usage only when there is an empty one.
    return {"usage": usage if answer.tells_usage else {}}


def _output(answer: Answer) -> Json:
    thought = answer.ask.reasoning_tokens
    return {
        "output_tokens": answer.ask.output_tokens,
        "output_tokens_details": {"thinking_tokens": thought} if thought else None,
    }


def _usage(answer: Answer, output: Json) -> Json:
    """Input leaves out what was read from the cache and what was written to it."""
    cached = answer.cached
    written = cached.written + cached.written_1h
    return {
        "input_tokens": answer.ask.input_tokens - cached.read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": cached.written,
            "ephemeral_1h_input_tokens": cached.written_1h,
        },
        "service_tier": answer.ask.service_tier,
        **output,
    }
