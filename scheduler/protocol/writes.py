"""Decides what a worker's words look like that are for keeping while its attempt goes on, and their answer.

Each carries a `ref` of the worker's choice, by which the answer is known; to say one again does no harm. It never
decides whether the attempt may write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.protocol.fields import Fields

NAME_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where the run of this step can be taken up. `after`: only if that is the version there."""

    ref: int
    lease: int
    value: object
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """What a call of the attempt has used; `call` names it within the attempt."""

    ref: int
    lease: int
    call: str
    usage: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """An effect of the run on the world outside is about to be made."""

    ref: int
    lease: int
    step: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What came of an effect that was claimed."""

    ref: int
    lease: int
    step: str
    receipt: object


@dataclass(frozen=True, slots=True)
class Abandon:
    """An effect that was claimed was not made."""

    ref: int
    lease: int
    step: str


Write = Checkpoint | Charge | Claim | Commit | Abandon


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a write: what it returns, or why nothing was written (`code`; `stale_lease`: it has ended)."""

    ref: int
    lease: int
    code: str | None = None
    detail: str = ""
    body: Mapping[str, Any] | None = None


WRITES: Final[Mapping[str, Callable[[Fields], Write]]] = {
    "checkpoint": lambda said: Checkpoint(
        said.id("ref"), said.id("lease_id"), said.value("checkpoint"), said.optional_id("version")
    ),
    "charge": lambda said: Charge(
        said.id("ref"),
        said.id("lease_id"),
        said.text("call", chars_max=NAME_CHARS_MAX),
        said.optional_object("usage") or {},
    ),
    "claim": lambda said: Claim(
        said.id("ref"),
        said.id("lease_id"),
        said.text("step", chars_max=NAME_CHARS_MAX),
        said.text("fingerprint", chars_max=NAME_CHARS_MAX),
    ),
    "commit": lambda said: Commit(
        said.id("ref"), said.id("lease_id"), said.text("step", chars_max=NAME_CHARS_MAX), said.value("receipt")
    ),
    "abandon": lambda said: Abandon(said.id("ref"), said.id("lease_id"), said.text("step", chars_max=NAME_CHARS_MAX)),
}


def answer(said: Fields) -> Answer:
    """What the server answered to a write. Raises BadMessage."""
    code, detail = said.optional_text("code"), said.text("detail", default="")
    return Answer(said.id("ref"), said.id("lease_id"), code, detail, None if code is not None else said.said)
