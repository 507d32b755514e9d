"""OpenAI's chat completions: `POST /v1/chat/completions`.

Decides the shape of requests, answers and chunks. It must never decide whether to answer.
"""

from __future__ import annotations

from typing import Final

from scheduler.demo.provider_sim import content
from scheduler.demo.provider_sim.api import Json, event
from scheduler.demo.provider_sim.asks import (
    Answer,
    Ask,
    answer_length,
    invalid,
    read_effort,
    read_fields,
    read_messages,
    read_model,
    read_whole,
)
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.openai_manners import OPENAI_MANNERS, OVERLOADED
from scheduler.demo.provider_sim.prompt_cache import automatic_marks
from scheduler.demo.provider_sim.settings import Settings

STREAM_CHUNKS_MAX: Final = 16


class ChatApi:
    """Chat completions."""

    name: Final = "chat"
    manners: Final = OPENAI_MANNERS
    end: Final = b"data: [DONE]\n\n"
    stream_error: Final = event(OVERLOADED)

    def parse(self, request: Request, settings: Settings) -> Ask:
        """Read a request. Raises Refused."""
        fields = read_fields(request.body)
        model, messages = read_model(fields), read_messages(fields)
        if fields.get("n", 1) != 1:
            raise invalid("n", "Only one choice is supported.")
        cap = read_whole(fields, "max_completion_tokens") or read_whole(fields, "max_tokens")
        prompt, options = content.prompt_text(messages), fields.get("stream_options")
        length = answer_length(model, prompt, settings, cap=cap, effort=read_effort(fields.get("reasoning_effort")))
        return Ask(
            model=model,
            prompt=prompt,
            input_tokens=length.input_tokens,
            output_tokens=length.output_tokens,
            reasoning_tokens=length.reasoning_tokens,
            # The larger of the tokens in and the most that may come out: a large cap throttles before a token is made.
            tokens_at_door=max(length.input_tokens, cap or 0),
            cut_short=length.cut_short,
            streams=fields.get("stream") is True,
            include_usage=isinstance(options, dict) and options.get("include_usage") is True,
            service_tier=tier_of(fields),
            marks=automatic_marks(prompt, content.CHARS_PER_TOKEN),
            latency_s=length.latency_s,
        )

    def whole(self, answer: Answer) -> Json:
        """A chat completion."""
        ask = answer.ask
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(ask)}
        body: Json = {
            "id": f"chatcmpl-{answer.number:012x}",
            "object": "chat.completion",
            "created": answer.created,
            "model": ask.model,
            "choices": [choice],
            "service_tier": ask.service_tier,
        }
        return body | ({"usage": _usage(answer)} if answer.tells_usage else {})

    def events(self, answer: Answer) -> list[bytes]:
        """The chunks; one for the usage when that was asked for, whose `choices` is empty."""
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in answer.pieces(STREAM_CHUNKS_MAX)]
        chunks = [_chunk(answer, choices=[_choice(delta, None)]) for delta in deltas]
        chunks.append(_chunk(answer, choices=[_choice({}, _finish_reason(answer.ask))]))
        if answer.ask.include_usage and answer.tells_usage:
            chunks.append(_chunk(answer, choices=[], usage=_usage(answer)))
        return [event(chunk) for chunk in chunks]


def tier_of(fields: Json) -> str:
    """The tier that serves the request: the one that was asked for, except that `auto` comes to the default."""
    asked = fields.get("service_tier")
    return asked if isinstance(asked, str) and asked != "auto" else "default"


def _chunk(answer: Answer, *, choices: list[Json], usage: Json | None = None) -> Json:
    return {
        "id": f"chatcmpl-{answer.number:012x}",
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.ask.model,
        "service_tier": answer.ask.service_tier,
        "choices": choices,
        "usage": usage,
    }


def _choice(delta: Json, finish_reason: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _finish_reason(ask: Ask) -> str:
    return "length" if ask.cut_short else "stop"


def _usage(answer: Answer) -> Json:
    ask = answer.ask
    return {
        "prompt_tokens": ask.input_tokens,
        "completion_tokens": ask.output_tokens,
        "total_tokens": ask.input_tokens + ask.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached.read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": ask.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
