"""The APIs that the `llm` executor speaks: where each is asked, how it is paid for, and how its answers are read.

Decides nothing about a call; it is the table of their differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.providers.answers import Answer, AnswerStream
from scheduler.providers.chat_answers import ChatStream, read_chat
from scheduler.providers.embeddings_answers import read_embeddings
from scheduler.providers.llm_config import ApiName
from scheduler.providers.messages_answers import MessageStream, read_message
from scheduler.providers.responses_answers import ResponseStream, read_response


@dataclass(frozen=True, slots=True)
class Api:
    """One of them. `asked` is the field with what is asked, `output_limits` those that bound the output."""

    path: str
    asked: str
    output_limits: tuple[str, ...]
    read: Callable[[object], Answer | None]
    stream: Callable[[], AnswerStream]
    takes_bearer: bool = True


APIS: Final[Mapping[ApiName, Api]] = {
    ApiName.CHAT: Api("/chat/completions", "messages", ("max_completion_tokens", "max_tokens"), read_chat, ChatStream),
    ApiName.RESPONSES: Api("/responses", "input", ("max_output_tokens",), read_response, ResponseStream),
    ApiName.EMBEDDINGS: Api("/embeddings", "input", (), read_embeddings, ChatStream),
    ApiName.MESSAGES: Api("/messages", "messages", ("max_tokens",), read_message, MessageStream, takes_bearer=False),
}


def headers_for(api: Api, *, key: str | None, anthropic_version: str) -> dict[str, str]:
    """The headers of a request, credential included."""
    headers = {"content-type": "application/json"}
    if not api.takes_bearer:
        headers["anthropic-version"] = anthropic_version
    if key is not None:
        headers |= {"authorization": f"Bearer {key}"} if api.takes_bearer else {"x-api-key": key}
    return headers
