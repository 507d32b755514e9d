"""An API's answer as the JSON that a task's submitter gets.

Decides what is kept of an answer: what was asked for, in one shape for streamed and whole answers, without the
provider's envelope. It must never pass off an answer of another shape as an empty result.
"""

from __future__ import annotations

from scheduler.engine.executors.llm_request import LlmRequest
from scheduler.providers.chat_stream import ChatStream
from scheduler.providers.fields import count, mapping, storable, text
from scheduler.providers.usage import Usage, chat_completion_usage, embeddings_usage


def chat_result(body: object, request: LlmRequest) -> tuple[dict[str, object], Usage | None] | None:
    """Text, tool calls and finish reason of a chat completion's first choice; None when it is no chat completion."""
    fields = mapping(body)
    choices = fields.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    choice = mapping(choices[0])
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    content, tool_calls, refusal = message.get("content"), message.get("tool_calls"), text(message.get("refusal"))
    value: dict[str, object] = {
        "text": storable(content) if isinstance(content, str) else "",
        "model": text(fields.get("model")) or request.model,
        "finish_reason": text(choice.get("finish_reason")),
    }
    if tool_calls:
        value["tool_calls"] = tool_calls
    if refusal is not None:
        value["refusal"] = storable(refusal)
    return value, chat_completion_usage(fields.get("usage"))


def stream_result(stream: ChatStream, request: LlmRequest) -> dict[str, object]:
    """The same for a stream that came to its end."""
    value: dict[str, object] = {
        "text": stream.text,
        "model": stream.model or request.model,
        "finish_reason": stream.finish_reason,
    }
    if stream.tool_calls:
        value["tool_calls"] = stream.tool_calls
    return value


def embeddings_result(body: object, request: LlmRequest) -> tuple[dict[str, object], Usage | None] | None:
    """The vectors in the order of their inputs; None when the answer holds none."""
    fields = mapping(body)
    data = fields.get("data")
    if not isinstance(data, list) or not data:
        return None
    in_order = sorted(map(mapping, data), key=lambda each: count(each.get("index")) or 0)
    vectors = [each.get("embedding") for each in in_order]
    if any(vector is None for vector in vectors):
        return None
    value: dict[str, object] = {"embeddings": vectors, "model": text(fields.get("model")) or request.model}
    return value, embeddings_usage(fields.get("usage"))
