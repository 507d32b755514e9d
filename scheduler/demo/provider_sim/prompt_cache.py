"""The provider's cache of prompts: which beginnings of prompts it has seen.

Decides how much of a prompt is read from the cache and how much is written to it. It must never count a token twice:
what is read is not written, and what is neither is plain input. Entries do not expire; the oldest make room.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ENTRIES_MAX: Final = 10_000
AUTOMATIC_FROM_TOKENS: Final = 1024
"""OpenAI caches prompts from this length on by itself, …"""
AUTOMATIC_STEP_TOKENS: Final = 128
"""… in steps of so many tokens."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place up to which a prompt may be cached. `written`: writing to the cache is charged; `long`: for an hour."""

    tokens: int
    prefix: bytes
    written: bool = False
    long: bool = False


@dataclass(frozen=True, slots=True)
class Cached:
    """Input tokens that were read from the cache, and that were written to it for five minutes or an hour."""

    read: int = 0
    written: int = 0
    written_1h: int = 0


class PromptCache:
    """What one provider remembers, for each account apart."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str, bytes], None] = OrderedDict()

    def look_up(self, account: str, model: str, marks: Sequence[Mark]) -> Cached:
        """Read up to the last mark that is known, write up to the last one there is. `marks` are in order."""
        keys = [(account, model, mark.prefix) for mark in marks]
        read = max((mark.tokens for mark, key in zip(marks, keys, strict=True) if key in self._seen), default=0)
        for key in keys:
            self._seen[key] = None
            self._seen.move_to_end(key)
        while len(self._seen) > ENTRIES_MAX:
            self._seen.popitem(last=False)
        beyond = [mark for mark in marks if mark.written and mark.tokens > read]
        written = beyond[-1].tokens - read if beyond else 0
        in_long = max((mark.tokens - read for mark in beyond if mark.long), default=0)
        return Cached(read, written - in_long, in_long)

    def forget(self) -> None:
        """As after the start."""
        self._seen.clear()


def automatic_marks(prompt: str, chars_per_token: int) -> tuple[Mark, ...]:
    """The places at which OpenAI's API caches a prompt by itself, free of charge."""
    tokens = len(prompt) // chars_per_token
    return tuple(
        Mark(at, prefix_digest(prompt[: at * chars_per_token]))
        for at in range(AUTOMATIC_FROM_TOKENS, tokens + 1, AUTOMATIC_STEP_TOKENS)
    )


def prefix_digest(prefix: str) -> bytes:
    """What a beginning is known by."""
    return hashlib.sha256(prefix.encode("utf-8", "surrogatepass")).digest()
