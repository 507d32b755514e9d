"""One chat completion, whole or out of the chunks of its stream.

Decides what an answer amounts to: text, tool calls, finish reason, usage, and whether a stream was whole, cut, or ended
by an error event. It must never claim a cut stream to be whole, and never add up usage: the last report wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduler.providers.answers import Answer, parse_event, tool_call
from scheduler.providers.fields import count, mapping, storable, text
from scheduler.providers.usage import Usage, chat_completion_usage


def read_chat(body: object) -> Answer | None:
    """The first choice of a chat completion; None when it is no chat completion."""
    fields = mapping(body)
    choices = fields.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    choice = mapping(choices[0])
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    content, tool_calls, refusal = message.get("content"), message.get("tool_calls"), text(message.get("refusal"))
    return Answer(
        model=text(fields.get("model")),
        text=storable(content) if isinstance(content, str) else "",
        finish_reason=text(choice.get("finish_reason")),
        tool_calls=tool_calls if isinstance(tool_calls, list) else [],
        refusal=None if refusal is None else storable(refusal),
        usage=_usage(fields, None),
    )


def _usage(fields: Mapping[str, object], before: Usage | None) -> Usage | None:
    """The tier stands beside the usage, in every chunk."""
    usage, tier = chat_completion_usage(fields.get("usage")) or before, text(fields.get("service_tier"))
    return usage if usage is None or tier is None else replace(usage, service_tier=tier)


@dataclass(slots=True)
class ToolCall:
    """A call of a tool as far as it has arrived; `arguments` is JSON text in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """In the shape that an answer without streaming has."""
        return tool_call(call_id=self.id, name=self.name, arguments="".join(self.arguments))


@dataclass(slots=True)
class ChatStream:
    """Collects the first choice of a streamed chat completion."""

    id: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    error: object | None = None
    ended: bool = False
    _refusal: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _tool_calls: dict[int, ToolCall] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text so far."""
        return storable("".join(self._pieces))

    @property
    def tool_calls(self) -> list[dict[str, object]]:
        """The tool calls so far, in order."""
        return [self._tool_calls[index].as_json() for index in sorted(self._tool_calls)]

    @property
    def whole(self) -> bool:
        """Whether the answer came to its end: `[DONE]`, or a finish reason from those who do not send it."""
        return self.error is None and (self.ended or self.finish_reason is not None)

    @property
    def produced(self) -> str:
        """All that was written: text, refusal, calls of tools, and reasoning where a provider shows it."""
        arguments = [piece for call in self._tool_calls.values() for piece in (call.name, *call.arguments)]
        return "".join([*self._reasoning, *self._pieces, *self._refusal, *arguments])

    def answer(self) -> Answer:
        """The answer, as far as it came."""
        return Answer(
            model=self.model,
            text=self.text,
            finish_reason=self.finish_reason,
            tool_calls=self.tool_calls,
            refusal=storable("".join(self._refusal)) or None,
            usage=self.usage,
        )

    def take(self, data: str) -> None:
        """Take the data of one event. After an error or the end, nothing more counts."""
        if self.ended or self.error is not None:
            return
        if data == "[DONE]":
            self.ended = True
            return
        fields = parse_event(data)
        if isinstance(fields, str) or fields.get("error") is not None:
            self.error = fields
            return
        self._take_chunk(fields)

    def _take_chunk(self, fields: Mapping[str, object]) -> None:
        self.id = text(fields.get("id")) or self.id
        self.model = text(fields.get("model")) or self.model
        self.usage = _usage(fields, self.usage)
        choices = fields.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if mapping(choice).get("index", 0) == 0:
                self._take_choice(mapping(choice))

    def _take_choice(self, choice: Mapping[str, object]) -> None:
        self.finish_reason = text(choice.get("finish_reason")) or self.finish_reason
        delta = mapping(choice.get("delta"))
        for name, pieces in (
            ("content", self._pieces),
            ("refusal", self._refusal),
            ("reasoning_content", self._reasoning),
            ("reasoning", self._reasoning),
        ):
            piece = delta.get(name)
            if isinstance(piece, str):
                pieces.append(piece)
        tool_calls = delta.get("tool_calls")
        for part in tool_calls if isinstance(tool_calls, list) else []:
            self._take_tool_call(mapping(part))

    def _take_tool_call(self, piece: Mapping[str, object]) -> None:
        call = self._tool_calls.setdefault(count(piece.get("index")) or 0, ToolCall())
        function = mapping(piece.get("function"))
        call.id = text(piece.get("id")) or call.id
        call.name = text(function.get("name")) or call.name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
