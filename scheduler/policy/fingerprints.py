"""Decides which dead letters are alike.

They are when they have the same pool, tenant, kind and class of failure, and the same message but for what differs from
one call to the next. It sees texts only; two messages that say the same about different things must come out equal,
whatever is in them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

SHAPE_CHARS_MAX: Final = 200
MESSAGE_CHARS_MAX: Final = 1_000
"""What is kept of a message beside its shape, and what of it is looked at."""

_REPLACED: Final = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?\b"), "<time>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|“[^”]*”"), "<text>"),
    # Anything that looks like a name of a thing: it has digits in it, and letters or signs around them.
    (re.compile(r"\b(?=[\w.:/-]*[A-Za-z_])(?=[\w.:/-]*\d)\w[\w.:/-]*\w\b"), "<id>"),
    (re.compile(r"\d+([.,:]\d+)*"), "<n>"),
)
_REPEATED = re.compile(r"(<\w+>)([\s,;|]*\1)+")
_BLANKS = re.compile(r"\s+")


class Death(NamedTuple):
    """What a dead letter is told apart by."""

    tenant: int
    pool: int
    kind: str
    failure_class: str
    shape: str


def shape_of(message: str) -> str:
    """The message without what differs: numbers, ids, addresses and what it quotes are replaced by what they are."""
    text = message[:MESSAGE_CHARS_MAX]
    for pattern, word in _REPLACED:
        text = pattern.sub(word, text)
    text = _REPEATED.sub(r"\1…", text)
    return _BLANKS.sub(" ", text).strip()[:SHAPE_CHARS_MAX]


def fingerprint_of(death: Death) -> int:
    """A number from 1 to 2⁶³ − 1 that is the same for deaths that are alike."""
    parts = (str(death.tenant), str(death.pool), death.kind, death.failure_class, death.shape)
    said = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest()) >> 1 or 1


def write_fingerprint(number: int) -> str:
    """As people see it, and as filters name it: sixteen digits from 0 to f."""
    return f"{number:016x}"


def read_fingerprint(text: str) -> int:
    """The number that was written so. Raises ValueError for anything else."""
    return int(text, 16)
