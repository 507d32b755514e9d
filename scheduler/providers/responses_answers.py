"""One response of OpenAI's responses API, whole or out of the events of its stream.

Decides what an answer amounts to, and whether a stream was whole, cut, or ended by an error. The response that a stream
ends with is the answer; what came before only counts when the stream is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from scheduler.providers.answers import Answer, parse_event, tool_call
from scheduler.providers.fields import mapping, storable, text
from scheduler.providers.usage import Usage, responses_usage

_DELTAS: Final = frozenset({
    "response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta", "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
})  # fmt: skip
_ENDS: Final = frozenset({"response.completed", "response.incomplete"})


def read_response(body: object) -> Answer | None:
    """The text, the calls of tools and why it ended; None when it is no response, or one that failed.

    The reason to finish is the response's status, or what made it incomplete.
    """
    fields = mapping(body)
    output = fields.get("output")
    if not isinstance(output, list) or fields.get("status") not in ("completed", "incomplete"):
        return None
    items = [mapping(item) for item in output]
    parts = [mapping(part) for item in items if item.get("type") == "message" for part in _parts(item)]
    refusal = _joined(parts, "refusal", "refusal")
    return Answer(
        model=text(fields.get("model")),
        text=_joined(parts, "output_text", "text"),
        finish_reason=text(mapping(fields.get("incomplete_details")).get("reason")) or text(fields.get("status")),
        tool_calls=[
            tool_call(call_id=item.get("call_id"), name=item.get("name"), arguments=item.get("arguments"))
            for item in items
            if item.get("type") == "function_call"
        ],
        refusal=refusal or None,
        blocks=output if any(item.get("type") != "message" for item in items) else [],
        usage=_usage(fields),
    )


def failure_of(body: object) -> object | None:
    """The error of a response that failed although its status is that of a success; None when it did not."""
    fields = mapping(body)
    error = fields.get("error")
    return {"error": error} if fields.get("status") == "failed" or error is not None else None


@dataclass(slots=True)
class ResponseStream:
    """Collects a streamed response."""

    usage: Usage | None = None
    error: object | None = None
    ended: bool = False
    _model: str | None = None
    _final: Answer | None = None
    _text: list[str] = field(default_factory=list)
    _produced: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether the response that ends the stream has come."""
        return self.error is None and self._final is not None

    @property
    def produced(self) -> str:
        """All pieces of text, thoughts and arguments that came."""
        return "".join(self._produced)

    def answer(self) -> Answer:
        """The response that ended the stream, or the text so far."""
        return self._final or Answer(model=self._model, text=storable("".join(self._text)), usage=self.usage)

    def take(self, data: str) -> None:
        """Take the data of one event. After an error or the end, nothing more counts."""
        if self.ended or self.error is not None or data == "[DONE]":
            return
        event = parse_event(data)
        if isinstance(event, str):
            self.error = event
            return
        kind, delta = event.get("type"), event.get("delta")
        if kind == "error" or event.get("error") is not None:
            self.error = event
        elif kind == "response.failed":
            self.error = failure_of(event.get("response")) or event
        elif kind in _ENDS:
            self._end(event)
        elif kind in _DELTAS and isinstance(delta, str):
            self._produced.append(delta)
            if kind == "response.output_text.delta":
                self._text.append(delta)
        self._model = text(mapping(event.get("response")).get("model")) or self._model

    def _end(self, event: Mapping[str, object]) -> None:
        self._final = read_response(event.get("response"))
        self.ended = True
        if self._final is None:
            self.error = "the response that ends the stream is not what the API promises"
        else:
            self.usage = self._final.usage


def _parts(item: Mapping[str, object]) -> list[object]:
    parts = item.get("content")
    return parts if isinstance(parts, list) else []


def _joined(parts: list[Mapping[str, object]], kind: str, name: str) -> str:
    """The texts of the parts of a kind, one after the other."""
    texts = [part.get(name) for part in parts if part.get("type") == kind]
    return storable("".join(each for each in texts if isinstance(each, str)))


def _usage(fields: Mapping[str, object]) -> Usage | None:
    usage, tier = responses_usage(fields.get("usage")), text(fields.get("service_tier"))
    return usage if usage is None or tier is None else replace(usage, service_tier=tier)
