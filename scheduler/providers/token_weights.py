"""What a call takes from a limit on tokens: before it is made, and once it is known what it used.

Decides the amount by the weights that a provider counts with, because "a token" is another thing to each: some leave
cached input out, some count input only, some count output five times. It must never take nothing: a call takes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from scheduler.providers.usage import Usage

WEIGHT_MAX: Final = 1000.0
OUTPUT_DEFAULT_TOKENS: Final = 1024
"""What a call may write where nothing says how much: a call that writes more leaves a debt."""


class Reserve(StrEnum):
    """How a provider charges the output when the request arrives."""

    NONE = "none"
    """Not at all: only what was written counts, afterwards."""
    MAX_TOKENS = "max_tokens"
    """The input and the most that may be written."""
    MAX_OF = "max_of"
    """The larger of the two."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much of the limit one token takes, by what it is."""

    input: float = 1.0
    cache_read: float = 1.0
    cache_write: float = 1.0
    output: float = 1.0


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """How one limit counts the tokens of a call."""

    weights: Weights = Weights()
    reserve: Reserve = Reserve.MAX_TOKENS

    def estimate(self, *, input_tokens: int, output_most: int | None) -> float:
        """What to take before the call; `output_most` is the most that it may write (0 where it writes nothing)."""
        into = input_tokens * self.weights.input
        out_of = (OUTPUT_DEFAULT_TOKENS if output_most is None else output_most) * self.weights.output
        by_mode = {Reserve.NONE: into, Reserve.MAX_TOKENS: into + out_of, Reserve.MAX_OF: max(into, out_of)}
        return max(1.0, by_mode[self.reserve])

    def actual(self, usage: Usage) -> float:
        """What a call has taken that used so much."""
        weights = self.weights
        return (
            usage.input_uncached * weights.input
            + usage.cache_read * weights.cache_read
            + (usage.cache_write + usage.cache_write_1h) * weights.cache_write
            + usage.output_total * weights.output
        )


def parse_token_limits(value: object) -> dict[str, TokenLimit]:
    """Limits by the name of their resource. Raises ValueError with a sentence that names the place."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("'tokens' must be an object of limits by resource, such as {\"acme-tpm\": {}}.")  # noqa: TRY004 - one kind of error for a whole configuration
    return {str(resource): _parse(str(resource), limit) for resource, limit in value.items()}


def _parse(resource: str, limit: object) -> TokenLimit:
    if not isinstance(limit, dict) or set(limit) - {"weights", "reserve"}:
        raise ValueError(f"'tokens.{resource}' knows 'weights' and 'reserve' only.")
    reserve = limit.get("reserve", Reserve.MAX_TOKENS.value)
    if reserve not in {each.value for each in Reserve}:
        raise ValueError(f"'tokens.{resource}.reserve' must be one of {', '.join(Reserve)}.")
    return TokenLimit(_weights(resource, limit.get("weights") or {}), Reserve(reserve))


def _weights(resource: str, value: object) -> Weights:
    known = [each.name for each in fields(Weights)]
    if not isinstance(value, Mapping) or set(value) - set(known):
        raise ValueError(f"'tokens.{resource}.weights' knows {', '.join(known)} only.")
    for name, weight in value.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= WEIGHT_MAX:
            raise ValueError(f"'tokens.{resource}.weights.{name}' must be a number from 0 to {WEIGHT_MAX:g}.")
    return Weights(**{str(name): float(weight) for name, weight in value.items()})
