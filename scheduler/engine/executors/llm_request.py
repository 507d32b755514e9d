"""A task's payload as a request to a model's API.

Decides which payloads are calls at all, of which API and model, and the few things that we set in them: the model where
none is named, the most that may be written, the usage report of a stream, and no tools for an attempt that should only
answer. It must never change anything else of what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from scheduler.engine.executors.base import Permanent
from scheduler.engine.executors.llm_apis import APIS
from scheduler.providers.fields import count, mapping, text
from scheduler.providers.llm_config import MESSAGES_OUTPUT_DEFAULT_TOKENS, ApiName, LlmConfig, ModelTerms
from scheduler.providers.requests import api_of, read_call

TOOL_FIELDS: Final = (
    "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "functions", "function_call",
)  # fmt: skip
OPENAI_HOSTS: Final = ("openai.com", "openai.azure.com", "cognitiveservices.azure.com")
THINKING_TOKENS_MIN: Final = 1024
"""The messages API takes no smaller budget for thinking, and none that is not below the limit of the output."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the attempt may do beyond what was asked: at most so many tokens, no tools, another model."""

    output_tokens: int | None = None
    answer_only: bool = False
    model: str | None = None


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """A request ready to be sent. `input_tokens_estimate` is for calls whose usage is never reported."""

    api: ApiName
    terms: ModelTerms
    body: bytes
    model: str
    streams: bool
    input_tokens_estimate: int


def build_request(config: LlmConfig, payload: object, bounds: Bounds) -> LlmRequest:
    """Build the request. Raises Permanent, with a sentence, when the payload is no call."""
    if not isinstance(payload, Mapping):
        raise Permanent("the payload must be an object with 'messages' or 'input'")
    fields = dict(payload)
    model = bounds.model or text(fields.get("model")) or config.model
    if model is None:
        raise Permanent("the payload names no 'model' and the pool has no default")
    terms = config.terms_of(model)
    api = _api_of(fields, terms)
    fields.pop("api", None)
    fields["model"] = model
    streams = api is not ApiName.EMBEDDINGS and fields.get("stream") is True
    if api is ApiName.EMBEDDINGS:
        fields.pop("stream", None)
    elif streams and api is ApiName.CHAT:
        fields["stream_options"] = {**mapping(fields.get("stream_options")), "include_usage": True}
    if bounds.answer_only:
        fields = _without_tools(fields, api)
    _limit_output(fields, api, [terms.max_output_tokens, bounds.output_tokens], base_url=terms.endpoint.base_url)
    try:
        body = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Permanent("the payload cannot be written as JSON") from error
    return LlmRequest(
        api=api,
        terms=terms,
        body=body,
        model=model,
        streams=streams,
        input_tokens_estimate=read_call(fields).input_likely,
    )


def _api_of(fields: Mapping[str, object], terms: ModelTerms) -> ApiName:
    """The API that the payload names, else the pool; else its shape tells. Raises Permanent."""
    named = fields.get("api")
    if named is not None and named not in {each.value for each in ApiName}:
        raise Permanent(f"'api' must be one of {', '.join(ApiName)}")
    if ("input" in fields) == ("messages" in fields):
        raise Permanent("the payload must hold 'messages' or 'input', and not both")
    api = api_of(fields, by_pool=terms.api)
    asked = APIS[api].asked
    if asked not in fields:
        raise Permanent(f"a call of the {api.value} API must hold {asked!r}")
    if asked == "messages" and not (isinstance(fields["messages"], list) and fields["messages"]):
        raise Permanent("'messages' must be a list that is not empty")
    return api


def _without_tools(fields: dict[str, object], api: ApiName) -> dict[str, object]:
    """Leave the tools out; where the messages API needs them to understand what was said before, forbid their use."""
    if api is ApiName.MESSAGES and "tools" in fields and '"tool_use"' in json.dumps(fields["messages"], default=str):
        return {**fields, "tool_choice": {"type": "none"}}
    return {name: value for name, value in fields.items() if name not in TOOL_FIELDS}


def _limit_output(fields: dict[str, object], api: ApiName, bounds: list[int | None], *, base_url: str) -> None:
    """Set the smallest of what was asked and what may be written, in the fields that the payload uses."""
    named = [name for name in APIS[api].output_limits if fields.get(name) is not None]
    asked = [n for name in named if (n := count(fields[name])) is not None]
    known = [n for n in (*asked, *bounds) if n is not None]
    if not known and api is ApiName.MESSAGES:
        known = [MESSAGES_OUTPUT_DEFAULT_TOKENS]
    if not known or api is ApiName.EMBEDDINGS:
        return
    most = min(known)
    for name in named or [_output_limit(api, base_url)]:
        fields[name] = most
    thinking = mapping(fields.get("thinking"))
    budget = count(thinking.get("budget_tokens"))
    if api is ApiName.MESSAGES and budget is not None and budget >= most:
        if most > THINKING_TOKENS_MIN:
            fields["thinking"] = {**thinking, "budget_tokens": most - 1}
        else:
            del fields["thinking"]


def _output_limit(api: ApiName, base_url: str) -> str:
    """The field that bounds the output where the payload names none.

    OpenAI's newer models refuse the older name of chat completions; compatible providers may ignore the newer one, and
    a limit that is ignored is no limit.
    """
    host = urlsplit(base_url).hostname or ""
    older = api is ApiName.CHAT and not host.endswith(OPENAI_HOSTS)
    return APIS[api].output_limits[1 if older else 0]
