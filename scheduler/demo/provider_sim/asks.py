"""What a request asks for, once its JSON is understood.

Decides which requests are understood and how many tokens they are charged at the door. It must never accept a request
that the real API refuses for its shape.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from scheduler.demo.provider_sim import bodies, content
from scheduler.demo.provider_sim.settings import EMBEDDING_MODEL, MODELS, Settings

INPUTS_MAX: Final = 2048
SCRIPT: Final = re.compile(r"\[takes (\d{1,6}\.\d{1,6}) s, (\d{1,9}) tokens in, (\d{1,4}) out\]")
"""A prompt that says what its answer is to be like, for traffic that is to be played back exactly."""


class Refused(Exception):
    """The request is answered with an error before it reaches any limit."""

    def __init__(self, status: int, body: bodies.Json) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A chat (`inputs` None) or embeddings request. `tokens_at_door` is what the token limit charges for it."""

    model: str
    prompt: str
    input_tokens: int
    output_tokens: int = 0
    tokens_at_door: int = 0
    finish_reason: str = "stop"
    streams: bool = False
    include_usage: bool = False
    inputs: tuple[str, ...] | None = None
    dimensions: int = content.EMBEDDING_DIMENSIONS
    as_base64: bool = False
    latency_s: float | None = None
    """What a script says; None: drawn."""


def parse_chat(body: bytes, settings: Settings) -> Ask:
    """Read a chat completion request. Raises Refused."""
    fields = _fields(body)
    model = _model(fields, chat=True)
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _invalid("messages", "'messages' must be an array that is not empty.")
    if any(not isinstance(message, dict) or not isinstance(message.get("role"), str) for message in messages):
        raise _invalid("messages", "Each message must be an object with a 'role'.")
    if fields.get("n", 1) != 1:
        raise _invalid("n", "Only one choice is supported.")
    cap = _whole(fields, "max_completion_tokens") or _whole(fields, "max_tokens")
    prompt = content.prompt_text(messages)
    median, sigma = settings.output_tokens_median, settings.output_tokens_sigma
    wants = content.answer_tokens(model, prompt, median=median, sigma=sigma)
    output_tokens = wants if cap is None else min(cap, wants)
    input_tokens = max(1, content.count_tokens(prompt))
    latency_s = None
    script = SCRIPT.fullmatch(prompt) if settings.scripted else None
    if script is not None:
        latency_s, input_tokens, wants = float(script[1]), int(script[2]), int(script[3])
        output_tokens = wants
    options = fields.get("stream_options")
    return Ask(
        model=model,
        prompt=prompt,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        # The larger of the tokens in and the most that may come out: a large cap throttles before a token is made.
        tokens_at_door=max(input_tokens, cap or 0),
        finish_reason="stop" if output_tokens == wants else "length",
        streams=fields.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        latency_s=latency_s,
    )


def parse_embeddings(body: bytes) -> Ask:
    """Read an embeddings request: texts, or token numbers. Raises Refused."""
    fields = _fields(body)
    model = _model(fields, chat=False)
    given = fields.get("input")
    one = isinstance(given, str) or (isinstance(given, list) and all(type(each) is int for each in given))
    inputs = [given] if one and given else given
    if not isinstance(inputs, list) or not 0 < len(inputs) <= INPUTS_MAX:
        raise _invalid("input", f"'input' must be a text or 1 to {INPUTS_MAX} of them.")
    if any(not isinstance(each, str | list) or not each for each in inputs):
        raise _invalid("input", "'input' must hold texts or lists of tokens that are not empty.")
    tokens = sum(content.count_tokens(each) if isinstance(each, str) else len(each) for each in inputs)
    dimensions = _whole(fields, "dimensions") or content.EMBEDDING_DIMENSIONS
    if dimensions > content.EMBEDDING_DIMENSIONS_MAX:
        raise _invalid("dimensions", f"'dimensions' must be at most {content.EMBEDDING_DIMENSIONS_MAX}.")
    texts = tuple(each if isinstance(each, str) else json.dumps(each) for each in inputs)
    return Ask(
        model=model,
        prompt="\n".join(texts),
        input_tokens=tokens,
        tokens_at_door=tokens,
        inputs=texts,
        dimensions=dimensions,
        as_base64=fields.get("encoding_format") == "base64",
    )


def _fields(body: bytes) -> dict[str, object]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _invalid(None, "We could not parse the JSON body of your request.") from error
    if not isinstance(fields, dict):
        raise _invalid(None, "The body must be a JSON object.")
    return fields


def _model(fields: dict[str, object], *, chat: bool) -> str:
    model = fields.get("model")
    if not isinstance(model, str):
        raise _invalid("model", "You must provide a model parameter.")
    if model not in MODELS or (model != EMBEDDING_MODEL) is not chat:
        message = f"The model '{model[:100]}' does not exist or you do not have access to it."
        body = bodies.error(message, type_="invalid_request_error", code="model_not_found", param="model")
        raise Refused(HTTPStatus.NOT_FOUND, body)
    return model


def _whole(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise _invalid(name, f"'{name}' must be a whole number above 0.")
    return value


def _invalid(param: str | None, message: str) -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, bodies.error(message, type_="invalid_request_error", param=param))
