"""What a request asks for, once its JSON is understood, and how its fields are read.

Decides how long an answer is to be and what the request is charged at the door. It must never accept a value that the
real APIs refuse for its shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from scheduler.demo.provider_sim import content
from scheduler.demo.provider_sim.limits import Draw
from scheduler.demo.provider_sim.prompt_cache import Cached, Mark
from scheduler.demo.provider_sim.settings import EMBEDDING_MODEL, MODELS, Settings

SCRIPT: Final = re.compile(r"\[takes (\d{1,6}\.\d{1,6}) s, (\d{1,9}) tokens in, (\d{1,4}) out\]")
"""A prompt that says what its answer is to be like, for traffic that is to be played back exactly."""
EFFORTS: Final = {"none": 0.0, "minimal": 0.1, "low": 0.25, "medium": 0.5, "high": 1.0, "xhigh": 2.0}
"""Reasoning tokens for each token of the answer."""


class Refused(Exception):
    """The request is answered with an error before it reaches any limit. How that is told is the API's."""

    def __init__(self, status: int, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for text, or for embeddings (`inputs` is given).

    `output_tokens` hold the `reasoning_tokens`. `marks` are where the prompt may be cached; `latency_s` is what a
    script says (None: drawn).
    """

    model: str
    prompt: str
    input_tokens: int
    output_tokens: int = 0
    reasoning_tokens: int = 0
    tokens_at_door: int = 0
    counts_apart: bool = False
    cut_short: bool = False
    streams: bool = False
    include_usage: bool = False
    service_tier: str | None = None
    marks: tuple[Mark, ...] = ()
    inputs: tuple[str, ...] | None = None
    dimensions: int = content.EMBEDDING_DIMENSIONS
    as_base64: bool = False
    latency_s: float | None = None

    def draw(self, cached: Cached) -> Draw:
        """What it is charged at the door. Input that is read from the cache does not count where input counts apart."""
        return Draw(self.tokens_at_door, self.input_tokens - cached.read, self.counts_apart)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request, before an API gives it its shape. `created` is seconds since the epoch.

    `tells_usage` False: it is one of those that leave their usage out.
    """

    ask: Ask
    number: int
    created: int
    cached: Cached = field(default_factory=Cached)
    tells_usage: bool = True

    @property
    def text(self) -> str:
        """What it says, reasoning apart."""
        ask = self.ask
        return content.answer_text(ask.model, ask.prompt, ask.output_tokens - ask.reasoning_tokens)

    def pieces(self, most: int) -> list[str]:
        """The text in at most so many pieces of whole tokens."""
        size = content.CHARS_PER_TOKEN * max(1, -(-self.ask.output_tokens // most))
        return [self.text[at : at + size] for at in range(0, len(self.text), size)]


@dataclass(frozen=True, slots=True)
class Length:
    """How long an answer is to be; see `Ask`."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cut_short: bool
    latency_s: float | None


def answer_length(model: str, prompt: str, settings: Settings, *, cap: int | None, effort: float = 0.0) -> Length:
    """The length that the model wants, cut to the cap; a script in the prompt goes before both."""
    script = SCRIPT.fullmatch(prompt) if settings.scripted else None
    if script is not None:
        return Length(int(script[2]), int(script[3]), 0, cut_short=False, latency_s=float(script[1]))
    median, sigma = settings.output_tokens_median, settings.output_tokens_sigma
    visible = content.answer_tokens(model, prompt, median=median, sigma=sigma)
    reasoning = round(visible * effort)
    wants = visible + reasoning
    output = wants if cap is None else min(cap, wants)
    return Length(
        max(1, content.count_tokens(prompt)), output, min(reasoning, output), cut_short=output < wants, latency_s=None
    )


def read_fields(body: bytes) -> dict[str, object]:
    """The body as a JSON object. Raises Refused."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid(None, "We could not parse the JSON body of your request.") from error
    if not isinstance(fields, dict):
        raise invalid(None, "The body must be a JSON object.")
    return fields


def read_model(fields: Mapping[str, object], *, embeds: bool = False) -> str:
    """The model, which must be one that does this. Raises Refused."""
    model = fields.get("model")
    if not isinstance(model, str):
        raise invalid("model", "You must provide a model parameter.")
    if model not in MODELS or (model == EMBEDDING_MODEL) is not embeds:
        message = f"The model '{model[:100]}' does not exist or you do not have access to it."
        raise Refused(HTTPStatus.NOT_FOUND, message, code="model_not_found", param="model")
    return model


def read_messages(fields: Mapping[str, object], name: str = "messages") -> list[object]:
    """The messages: objects with a role. Raises Refused."""
    messages = fields.get(name)
    if not isinstance(messages, list) or not messages:
        raise invalid(name, f"'{name}' must be an array that is not empty.")
    if any(not isinstance(message, dict) or not isinstance(message.get("role"), str) for message in messages):
        raise invalid(name, "Each message must be an object with a 'role'.")
    return messages


def read_whole(fields: Mapping[str, object], name: str) -> int | None:
    """A whole number above 0, or None. Raises Refused."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise invalid(name, f"'{name}' must be a whole number above 0.")
    return value


def read_effort(value: object) -> float:
    """Reasoning tokens for each token of the answer, by the name of an effort. Raises Refused."""
    if value is None:
        return 0.0
    if not isinstance(value, str) or value not in EFFORTS:
        raise invalid("reasoning_effort", f"The effort must be one of {', '.join(EFFORTS)}.")
    return EFFORTS[value]


def invalid(param: str | None, message: str) -> Refused:
    """A request that is not understood."""
    return Refused(HTTPStatus.BAD_REQUEST, message, param=param)
