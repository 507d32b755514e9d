"""OpenAI's responses: `POST /v1/responses`.

Decides the shape of requests, answers and events. It must never decide whether to answer.
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
    read_model,
    read_whole,
)
from scheduler.demo.provider_sim.chat_api import STREAM_CHUNKS_MAX, tier_of
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.openai_manners import OPENAI_MANNERS
from scheduler.demo.provider_sim.prompt_cache import automatic_marks
from scheduler.demo.provider_sim.settings import Settings


class ResponsesApi:
    """Responses, whole or as events that are numbered."""

    name: Final = "responses"
    manners: Final = OPENAI_MANNERS
    end: Final = b""
    stream_error: Final = event(
        {
            "type": "error",
            "code": "server_is_overloaded",
            "message": "The server is currently overloaded with other requests.",
            "param": None,
            "sequence_number": 99,
        },
        "error",
    )

    def parse(self, request: Request, settings: Settings) -> Ask:
        """Read a request. Raises Refused."""
        fields = read_fields(request.body)
        model = read_model(fields)
        prompt = _prompt(fields)
        cap = read_whole(fields, "max_output_tokens")
        reasoning = fields.get("reasoning")
        effort = read_effort(reasoning.get("effort") if isinstance(reasoning, dict) else None)
        length = answer_length(model, prompt, settings, cap=cap, effort=effort)
        return Ask(
            model=model,
            prompt=prompt,
            input_tokens=length.input_tokens,
            output_tokens=length.output_tokens,
            reasoning_tokens=length.reasoning_tokens,
            tokens_at_door=max(length.input_tokens, cap or 0),
            cut_short=length.cut_short,
            streams=fields.get("stream") is True,
            service_tier=tier_of(fields),
            marks=automatic_marks(prompt, content.CHARS_PER_TOKEN),
            latency_s=length.latency_s,
        )

    def whole(self, answer: Answer) -> Json:
        """A response that came to its end, or to its cap."""
        return _response(answer, "incomplete" if answer.ask.cut_short else "completed")

    def events(self, answer: Answer) -> list[bytes]:
        """From `response.created` to the response as a whole."""
        place: Json = {"item_id": f"msg_{answer.number:012x}", "output_index": 0, "content_index": 0}
        part: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        status = "incomplete" if answer.ask.cut_short else "completed"
        told: list[tuple[str, Json]] = [
            ("response.created", {"response": _response(answer, "in_progress")}),
            ("response.in_progress", {"response": _response(answer, "in_progress")}),
            ("response.output_item.added", {"output_index": 0, "item": _message(answer, "in_progress", [])}),
            ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        ]
        told += [
            ("response.output_text.delta", {**place, "delta": piece, "logprobs": []})
            for piece in answer.pieces(STREAM_CHUNKS_MAX)
        ]
        told += [
            ("response.output_text.done", {**place, "text": answer.text, "logprobs": []}),
            ("response.content_part.done", {**place, "part": part}),
            ("response.output_item.done", {"output_index": 0, "item": _message(answer, status, [part])}),
            (f"response.{status}", {"response": _response(answer, status)}),
        ]
        return [
            event({"type": name, "sequence_number": number, **data}, name) for number, (name, data) in enumerate(told)
        ]


def _prompt(fields: Json) -> str:
    given = fields.get("input")
    if isinstance(given, str) and given:
        items: list[object] = [{"content": given}]
    elif isinstance(given, list) and given and all(isinstance(item, dict) for item in given):
        items = given
    else:
        raise invalid("input", "'input' must be a text or an array of items that is not empty.")
    return content.prompt_text([{"content": fields.get("instructions")}, *items])


def _response(answer: Answer, status: str) -> Json:
    ask, ended = answer.ask, status != "in_progress"
    part: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    return {
        "id": f"resp_{answer.number:012x}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "model": ask.model,
        "output": [_message(answer, status, [part])] if ended else [],
        "parallel_tool_calls": True,
        "service_tier": ask.service_tier,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _usage(answer) if ended and answer.tells_usage else None,
    }


def _message(answer: Answer, status: str, parts: list[Json]) -> Json:
    return {
        "id": f"msg_{answer.number:012x}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": parts,
    }


def _usage(answer: Answer) -> Json:
    ask = answer.ask
    return {
        "input_tokens": ask.input_tokens,
        "input_tokens_details": {"cached_tokens": answer.cached.read, "cache_write_tokens": 0},
        "output_tokens": ask.output_tokens,
        "output_tokens_details": {"reasoning_tokens": ask.reasoning_tokens},
        "total_tokens": ask.input_tokens + ask.output_tokens,
    }
