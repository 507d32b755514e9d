"""An answer in one shape for every API, and what the streams of all of them have in common.

Decides what a task's submitter gets of an answer: what was asked for, the same whole or streamed, without the
provider's envelope. It must never pass off an answer of another shape as an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from scheduler.providers.fields import storable
from scheduler.providers.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to.

    `tool_calls` have the shape of chat completions, whatever the API. `blocks` are what the API answered with in its
    own shape, given where the text is not all of it, because the next turn may have to repeat them. `vectors` are those
    of embeddings, in the order of their inputs; such an answer has nothing else.
    """

    model: str | None
    text: str = ""
    finish_reason: str | None = None
    tool_calls: list[dict[str, object]] = field(default_factory=list)
    refusal: str | None = None
    blocks: list[object] = field(default_factory=list)
    vectors: list[object] | None = None
    usage: Usage | None = None

    def as_json(self, *, asked_model: str) -> dict[str, object]:
        """For the submitter; the model that was asked for stands where the answer names none."""
        model = self.model or asked_model
        if self.vectors is not None:
            return {"embeddings": self.vectors, "model": model}
        more = {"tool_calls": self.tool_calls, "refusal": self.refusal, "blocks": self.blocks}
        return {
            "text": self.text,
            "model": model,
            "finish_reason": self.finish_reason,
            **{name: value for name, value in more.items() if value},
        }


class AnswerStream(Protocol):
    """Collects an answer out of the events of its stream. After an error or the end, nothing more counts."""

    def take(self, data: str) -> None:
        """Take the data of one event."""

    @property
    def error(self) -> object | None:
        """The event that told of an error, or a sentence of ours about one that cannot be read."""

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""

    @property
    def whole(self) -> bool:
        """Whether the answer came to its end."""

    @property
    def produced(self) -> str:
        """All that the model was seen to write, thoughts and arguments of tools included."""

    @property
    def usage(self) -> Usage | None:
        """What was reported so far."""

    def answer(self) -> Answer:
        """The answer, as far as it came."""


def parse_event(data: str) -> Mapping[str, object] | str:
    """The object in an event's data; a sentence when there is none."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        return "an event of the stream is not JSON"
    return parsed if isinstance(parsed, dict) else {}


def tool_call(*, call_id: object, name: object, arguments: object) -> dict[str, object]:
    """A call of a tool in the shape of chat completions; its arguments are JSON text."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": storable(written)}}
