"""What the model says, and how long it takes.

Decides prompts, answers and vectors from the request alone, so that the same request always gets the same answer; only
latency is drawn from the seeded generator. It must never produce more than the request allows.
"""

from __future__ import annotations

import hashlib
import math
from random import Random
from statistics import NormalDist

CHARS_PER_TOKEN = 4
OUTPUT_TOKENS_MAX = 4096
EMBEDDING_DIMENSIONS = 64
EMBEDDING_DIMENSIONS_MAX = 3072

_NORMAL = NormalDist()


def count_tokens(text: str) -> int:
    """Tokens in a text: one for every four characters begun."""
    return -(-len(text) // CHARS_PER_TOKEN)


def prompt_text(messages: list[object]) -> str:
    """All text of a chat's messages; parts that are not text count for nothing."""
    pieces: list[str] = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                pieces.append(text)
    return "\n".join(pieces)


def answer_tokens(model: str, prompt: str, *, median: float, sigma: float) -> int:
    """How long the answer to a prompt is: log-normal over prompts, always the same for one prompt."""
    fraction = (int.from_bytes(_digest(model, prompt)[:6]) + 0.5) / 2**48
    return min(OUTPUT_TOKENS_MAX, max(1, round(median * math.exp(sigma * _NORMAL.inv_cdf(fraction)))))


def answer_text(model: str, prompt: str, tokens: int) -> str:
    """An answer of exactly so many tokens: says who speaks, then repeats the prompt."""
    size = tokens * CHARS_PER_TOKEN
    text = f"{model} heard: {prompt or 'nothing'} "
    return (text * (size // len(text) + 1))[:size]


def embedding(model: str, text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on the text only."""
    seed = _digest(model, text)
    values: list[float] = []
    block = 0
    while len(values) < dimensions:
        digest = hashlib.sha256(seed + block.to_bytes(4)).digest()
        values.extend(int.from_bytes(digest[at : at + 4]) / 2**31 - 1.0 for at in range(0, 32, 4))
        block += 1
    values = values[:dimensions]
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / length for value in values]


def latency_s(chance: Random, *, median_s: float, sigma: float, max_s: float) -> float:
    """Seconds that an answer takes: log-normal, with the long tail that models have."""
    return min(max_s, median_s * math.exp(sigma * chance.gauss(0.0, 1.0)))


def _digest(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode("utf-8", "surrogatepass")).digest()
