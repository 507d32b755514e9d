"""One chat completion out of the chunks of its stream.

Decides what a stream amounts to: text, tool calls, finish reason, usage, and whether it was whole, cut, or ended by an
error event. It must never claim a cut stream to be whole, and never add up usage: the last report wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.providers.fields import count, mapping, storable, text
from scheduler.providers.usage import Usage, chat_completion_usage


@dataclass(slots=True)
class ToolCall:
    """A call of a tool as far as it has arrived; `arguments` is JSON text in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """In the shape that an answer without streaming has."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": storable("".join(self.arguments))},
        }


@dataclass(slots=True)
class ChatStream:
    """Collects the first choice of a streamed chat completion."""

    id: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    error: object | None = None
    ended: bool = False
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

    def take(self, data: str) -> None:
        """Take the data of one event. After an error or the end, nothing more counts."""
        if self.ended or self.error is not None:
            return
        if data == "[DONE]":
            self.ended = True
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            self.error = "a chunk of the stream is not JSON"
            return
        fields = mapping(chunk)
        if fields.get("error") is not None:
            self.error = chunk
            return
        self._take_chunk(fields)

    def _take_chunk(self, fields: Mapping[str, object]) -> None:
        self.id = text(fields.get("id")) or self.id
        self.model = text(fields.get("model")) or self.model
        self.usage = chat_completion_usage(fields.get("usage")) or self.usage
        choices = fields.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if mapping(choice).get("index", 0) == 0:
                self._take_choice(mapping(choice))

    def _take_choice(self, choice: Mapping[str, object]) -> None:
        self.finish_reason = text(choice.get("finish_reason")) or self.finish_reason
        delta = mapping(choice.get("delta"))
        content = delta.get("content")
        if isinstance(content, str):
            self._pieces.append(content)
        tool_calls = delta.get("tool_calls")
        for piece in tool_calls if isinstance(tool_calls, list) else []:
            self._take_tool_call(mapping(piece))

    def _take_tool_call(self, piece: Mapping[str, object]) -> None:
        call = self._tool_calls.setdefault(count(piece.get("index")) or 0, ToolCall())
        function = mapping(piece.get("function"))
        call.id = text(piece.get("id")) or call.id
        call.name = text(function.get("name")) or call.name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
