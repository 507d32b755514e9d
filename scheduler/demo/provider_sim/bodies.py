"""The JSON that an OpenAI-compatible API answers with.

Decides the shape of completions, chunks, embeddings and errors. It must never decide whether to answer.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Final

Json = dict[str, object]


def usage(prompt: int, completion: int) -> Json:
    """A chat completion's usage."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def completion(
    *,
    identity: str,
    created: int,
    model: str,
    text: str,
    finish_reason: str,
    usage: Json,
) -> Json:
    """A whole chat completion."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": identity,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": usage,
        "service_tier": "default",
    }


def chunk(
    *,
    identity: str,
    created: int,
    model: str,
    delta: Json | None,
    finish_reason: str | None = None,
    usage: Json | None = None,
) -> Json:
    """One chunk of a streamed chat completion; without a delta it is the usage chunk, whose `choices` is empty."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]
    return {
        "id": identity,
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": choices,
        "usage": usage,
    }


def embeddings(*, model: str, vectors: list[list[float]], tokens: int, as_base64: bool) -> Json:
    """An embeddings answer; clients may ask for little-endian floats in base64."""
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _packed(vector) if as_base64 else vector}
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def models(names: tuple[str, ...], *, created: int) -> Json:
    """The list of models."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": created, "owned_by": "simulator"} for name in names],
    }


def error(message: str, *, type_: str, code: str | None = None, param: str | None = None) -> Json:
    """An error in OpenAI's shape."""
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


INVALID_KEY: Final = error("Incorrect API key provided.", type_="invalid_request_error", code="invalid_api_key")
INSUFFICIENT_QUOTA: Final = error(
    "You exceeded your current quota, please check your plan and billing details.",
    type_="insufficient_quota",
    code="insufficient_quota",
)
SLOW_DOWN: Final = error(
    "Your requests are growing too fast. Reduce your rate and increase it gradually.",
    type_="requests",
    code="slow_down",
)
OVERLOADED_529: Final[Mapping[str, object]] = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
}
OVERLOADED_503: Final = error(
    "The server is currently overloaded with other requests.", type_="server_error", code="server_is_overloaded"
)
SERVER_ERROR: Final = error("The server had an error while processing your request.", type_="server_error")


def rate_limited(model: str, detail: str, *, cause: str, wait: str | None) -> Json:
    """The 429 of a limit, with the sentence that tells how long to wait."""
    sentence = f" Please try again in {wait}." if wait is not None else ""
    return error(
        f"Rate limit reached for {model} on {detail}.{sentence}",
        type_="tokens" if cause == "tokens" else "requests",
        code="rate_limit_exceeded",
    )


def too_large(model: str, detail: str) -> Json:
    """The 429 of a request that is larger than the whole limit."""
    return error(
        f"Request too large for {model} on {detail}. The input or output tokens must be reduced.",
        type_="tokens",
        code="rate_limit_exceeded",
    )


def retry_info(model: str, delay_s: float) -> Json:
    """A 429 in Gemini's shape, which tells the delay in the body only."""
    return {
        "error": {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "message": f"You exceeded the current quota of {model}.",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{delay_s:.3f}s"}],
        }
    }


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
