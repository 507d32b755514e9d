"""One message of Anthropic's API, whole or out of the events of its stream.

Decides what an answer amounts to, and whether a stream was whole, cut, or ended by an error event, which may come after
a success was announced. It must never add up usage: reports are cumulative, and the last one wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from scheduler.providers.answers import Answer, parse_event, tool_call
from scheduler.providers.fields import count, mapping, storable, text
from scheduler.providers.usage import Usage, anthropic_usage


def read_message(body: object) -> Answer | None:
    """The text, the calls of tools and why it ended; None when it is no message."""
    fields = mapping(body)
    content = fields.get("content")
    if fields.get("type") != "message" or not isinstance(content, list):
        return None
    return _answer(fields, content, text(fields.get("stop_reason")), anthropic_usage(fields.get("usage")))


def _answer(fields: Mapping[str, object], blocks: list[Any], stop_reason: str | None, usage: Usage | None) -> Answer:
    found = [mapping(block) for block in blocks]
    texts = [block.get("text") for block in found if block.get("type") == "text"]
    return Answer(
        model=text(fields.get("model")),
        text=storable("".join(each for each in texts if isinstance(each, str))),
        finish_reason=stop_reason,
        tool_calls=[
            tool_call(call_id=block.get("id"), name=block.get("name"), arguments=block.get("input"))
            for block in found
            if block.get("type") == "tool_use"
        ],
        blocks=blocks if any(block.get("type") != "text" for block in found) else [],
        usage=usage,
    )


@dataclass(slots=True)
class MessageStream:
    """Collects a streamed message, block by block."""

    error: object | None = None
    ended: bool = False
    _message: Mapping[str, object] = field(default_factory=dict)
    _stop_reason: str | None = None
    _usages: list[object] = field(default_factory=list)
    _blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _pieces: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    _produced: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether `message_stop` came, or at least the reason to stop from those who leave it out."""
        return self.error is None and (self.ended or self._stop_reason is not None)

    @property
    def produced(self) -> str:
        """All pieces of text, thoughts and arguments that came."""
        return "".join(self._produced)

    @property
    def usage(self) -> Usage | None:
        """The last value of each field so far."""
        return anthropic_usage(*self._usages)

    def answer(self) -> Answer:
        """The answer, as far as it came."""
        for (index, name), pieces in self._pieces.items():
            whole = storable("".join(pieces))
            if name != "partial_json":
                self._blocks[index][name] = whole
                continue
            with suppress(ValueError, RecursionError):
                self._blocks[index]["input"] = json.loads(whole or "{}")
        blocks: list[Any] = [self._blocks[index] for index in sorted(self._blocks)]
        return _answer(self._message, blocks, self._stop_reason, self.usage)

    def take(self, data: str) -> None:
        """Take the data of one event. After an error or the end, nothing more counts."""
        if self.ended or self.error is not None:
            return
        event = parse_event(data)
        if isinstance(event, str) or event.get("type") == "error" or event.get("error") is not None:
            self.error = event
            return
        match event.get("type"):
            case "message_start":
                self._message = mapping(event.get("message"))
                self._usages.append(self._message.get("usage"))
            case "content_block_start":
                index = count(event.get("index")) or 0
                self._blocks[index] = dict(mapping(event.get("content_block")))
            case "content_block_delta":
                self._take_delta(count(event.get("index")) or 0, mapping(event.get("delta")))
            case "message_delta":
                self._stop_reason = text(mapping(event.get("delta")).get("stop_reason")) or self._stop_reason
                self._usages.append(event.get("usage"))
            case "message_stop":
                self.ended = True
            case _:
                # Pings, ends of blocks, and kinds that are yet to come.
                return

    def _take_delta(self, index: int, delta: Mapping[str, object]) -> None:
        self._blocks.setdefault(index, {"type": "text"})
        for name in ("text", "thinking", "signature", "partial_json"):
            piece = delta.get(name)
            if isinstance(piece, str):
                self._pieces.setdefault((index, name), []).append(piece)
                self._produced.append("" if name == "signature" else piece)
