"""What a call will use at most, read from its request.

Decides how many tokens a request can be on its way in, and how many it asks for on its way out, for every API that
pools speak. Bounds are from above: a byte is at most one token; what is fetched from elsewhere has its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from scheduler.providers.fields import count, mapping, text
from scheduler.providers.llm_config import ApiName

ATTACHMENT_TOKENS: Final = 6_000
"""What an image or file that a request only points to may come to."""
OVERHEAD_TOKENS: Final = 16
"""What a chat template adds to a request, and again to each message."""
CHARS_PER_TOKEN: Final = 4
_INPUT_FIELDS: Final = (
    "messages",
    "input",
    "system",
    "instructions",
    "tools",
    "functions",
    "response_format",
    "contents",
)
_ONLY_IN_RESPONSES: Final = ("instructions", "reasoning", "max_output_tokens", "previous_response_id")
_OUTPUT_FIELDS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")


class Call(NamedTuple):
    """A request in figures; `output_most` is None when it names no limit."""

    model: str | None
    tier: str | None
    input_most: int
    input_likely: int
    output_most: int | None
    answers: int
    writes_1h: bool
    has_output: bool


def api_of(fields: Mapping[str, object], *, by_pool: ApiName | None) -> ApiName:
    """The API that a payload is for: the one that it names, else the pool; else its shape tells.

    Embeddings and responses both name their input `input`; what only responses have tells them apart.
    """
    named = text(fields.get("api"))
    if named is not None and named in {each.value for each in ApiName}:
        return ApiName(named)
    if by_pool is not None:
        return by_pool
    if "input" not in fields or "messages" in fields:
        return ApiName.CHAT
    return ApiName.RESPONSES if any(name in fields for name in _ONLY_IN_RESPONSES) else ApiName.EMBEDDINGS


def read_call(payload: object, *, model: str | None = None, api: ApiName | None = None) -> Call:
    """What a payload asks for; `model` and `api` are used where it names none."""
    fields = mapping(payload)
    written = json.dumps([fields[name] for name in _INPUT_FIELDS if name in fields], ensure_ascii=False)
    size = len(written.encode("utf-8", "replace"))
    parts, attachments = _parts(fields)
    embeds = api_of(fields, by_pool=api) is ApiName.EMBEDDINGS
    limits = [n for name in _OUTPUT_FIELDS if (n := count(fields.get(name)))]
    return Call(
        model=text(fields.get("model")) or model,
        tier=text(fields.get("service_tier")),
        input_most=size + OVERHEAD_TOKENS * (1 + parts) + ATTACHMENT_TOKENS * attachments,
        input_likely=-(-len(written) // CHARS_PER_TOKEN) + ATTACHMENT_TOKENS * attachments // 4,
        output_most=min(limits) if limits else None,
        answers=max(1, count(fields.get("n")) or 1),
        writes_1h='"1h"' in written,
        has_output=not embeds,
    )


def _parts(fields: Mapping[str, object]) -> tuple[int, int]:
    """How many messages there are, and how many of their parts point elsewhere."""
    found = fields.get("messages") or fields.get("input")
    messages = found if isinstance(found, list) else []
    attachments = 0
    for message in messages:
        content = mapping(message).get("content")
        for part in content if isinstance(content, list) else ():
            kind = text(mapping(part).get("type")) or ""
            attachments += kind not in ("", "text", "input_text", "output_text", "tool_result", "tool_use")
    return len(messages), attachments
